import { type ChildProcess, fork, spawn } from "node:child_process";
import cluster from "node:cluster";
import { once } from "node:events";
import path from "node:path";
import { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { startFleet } from "../fake-fleet.ts";

const folder = path.join(import.meta.dirname, "child");
const execArgv = ["-C", "idmint-source"];

async function fleet(): Promise<string> {
  const { store, servers } = await startFleet(2, onTestFinished);
  store.add("orders");
  return servers.map(({ address }) => address).join(",");
}

async function idsFrom(child: ChildProcess | Worker): Promise<readonly string[]> {
  const [ids] = (await once(child, "message")) as [readonly string[]];
  return ids;
}

test("forked children, cluster workers and worker threads never share an id", async () => {
  const addresses = await fleet();
  const count = 400;
  const script = path.join(folder, "issue-ids.ts");
  cluster.setupPrimary({ exec: script, args: [addresses, String(count)], execArgv });
  const children = [
    ...Array.from({ length: 2 }, () => fork(script, [addresses, String(count)], { execArgv })),
    ...Array.from({ length: 2 }, () => cluster.fork().process),
    ...Array.from(
      { length: 2 },
      () => new Worker(script, { workerData: [addresses, count], execArgv }),
    ),
  ];
  const all = (await Promise.all(children.map(idsFrom))).flat();
  expect(all.length).toBe(6 * count);
  expect(new Set(all).size).toBe(all.length);
});

interface Run {
  readonly code: number | null;
  readonly output: string;
  /** From its last output to its end. */
  readonly endedAfterMs: number;
}

async function run(script: string, address: string): Promise<Run> {
  let lastOutputAt = performance.now();
  const child = spawn(process.execPath, [...execArgv, path.join(folder, script), address], {
    stdio: ["ignore", "pipe", "inherit"],
    timeout: 60_000,
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    lastOutputAt = performance.now();
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output, endedAfterMs: performance.now() - lastOutputAt };
}

test("an idle client does not keep its process alive", async () => {
  const { code, output } = await run("idle.ts", (await fleet()).split(",")[0]!);
  expect([code, output]).toEqual([0, "1\n"]);
});

test("a call that waits keeps its process alive until it is answered or refused", async () => {
  const { code, output } = await run("waiting.ts", "127.0.0.1:9");
  expect([code, output]).toEqual([0, "SEGMENT_NOT_READY\n"]);
});

test("close ends a process at once, whatever is in flight", async () => {
  const { store, servers } = await startFleet(1, onTestFinished);
  store.add("orders");
  servers[0]!.verdict = () => ({ kind: "hang" });
  const { code, output, endedAfterMs } = await run("closed.ts", servers[0]!.address);
  expect([code, output]).toEqual([0, "closing\n"]);
  // The load in flight would have kept it for a minute.
  expect(endedAfterMs).toBeLessThan(5_000);
});
