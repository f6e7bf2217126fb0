// One caller asks for far more than a server can answer, over several connections, while another one goes about its work.
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Metadata, type ServiceError } from "@grpc/grpc-js";
import { GenerateIdsRequest } from "@idmint/proto";
import { RetryInfo, Status } from "@idmint/proto/rpc";
import { expect, onTestFinished, test } from "vitest";
import { framed, GRPC_HEADERS, h2loadProgram } from "../../bench/lib/h2load.ts";
import type { StormLoad, StormResult } from "../../bench/lib/storm-load.ts";
import { testDoor } from "../../src/doors.ts";
import { Child } from "../../src/fleet/child.ts";
import type { FleetServer } from "../../src/fleet/fleet.ts";
import { until } from "../../src/fleet/until.ts";
import { isLong, sqliteFile, startFleet } from "../fleet-support.ts";

const PATIENT = { withinMs: 60_000 };
const STORM = path.resolve(import.meta.dirname, "../../bench/lib/storm-load.ts");
const TAG = "orders";
const SECONDS = isLong ? 60 : 5;
/** Calls a second; more than any server on grpc-js answers on one core. */
const FLOOD = 80_000;

async function ownFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "idmint-storm-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

async function serverWith(env: Readonly<Record<string, string>>): Promise<FleetServer> {
  const fleet = await startFleet({ servers: 1, storeUrl: `sqlite:${await sqliteFile()}`, env });
  await fleet.first.api.createTag({ name: TAG });
  return fleet.first;
}

/** Begins a load from an address of this machine, and answers what came of it and the ids that it got. */
function load(
  name: string,
  server: FleetServer,
  folder: string,
  options: Pick<StormLoad, "from" | "connections" | "streams" | "callsPerSecond" | "seconds">,
) {
  const idsFile = path.join(folder, name);
  const config: StormLoad = {
    ...options,
    address: server.address,
    tag: TAG,
    settleSeconds: 0,
    idsFile,
  };
  const child = new Child(STORM, [JSON.stringify(config)], { name });
  const result = async (): Promise<StormResult & { readonly ids: BigUint64Array }> => {
    const exit = await child.waitForEnd((options.seconds + 120) * 1_000);
    expect(exit, child.describe()).toEqual({ code: 0, signal: null });
    const bytes = readFileSync(idsFile);
    const copy = new Uint8Array(bytes);
    return {
      ...(JSON.parse(child.stdout) as StormResult),
      ids: new BigUint64Array(copy.buffer),
    };
  };
  return { child, result };
}

/**
 * Calls from the address of the storm, as many as may be in flight, until the test stops them. A generator of ours takes as long
 * for a call as the fast door does, and cannot overload it. Each call asks for so many ids that those of one turn are too many on
 * a fast machine too.
 */
function startH2load({ address }: FleetServer, folder: string): ChildProcess {
  const { command, env } = h2loadProgram();
  const body = path.join(folder, "body");
  const request = GenerateIdsRequest.encode({ tag: TAG, count: 200, asList: true });
  writeFileSync(body, framed(request.finish()));
  const amount = ["-D", "300", "-c", "64", "-m", "1024"];
  const url = `http://${address}/idmint.v1.IdService/GenerateIds`;
  const child = spawn(command, [...amount, ...GRPC_HEADERS, "-d", body, url], {
    env: { ...process.env, ...env },
    stdio: "ignore",
  });
  onTestFinished(() => void child.kill());
  return child;
}

/** One call from the address of the storm, as a client sees it. */
function refusalOf({ api }: FleetServer): Promise<ServiceError | undefined> {
  return new Promise((resolve) => {
    const options = { deadline: Date.now() + 30_000 };
    api.ids.generateId({ tag: TAG, name: "" }, new Metadata(), options, (error) => {
      resolve(error ?? undefined);
    });
  });
}

/** What a client reads in a refusal. */
function assertIsAnswer(error: ServiceError, reason: string): void {
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  const { code, details } = Status.decode(bytes as Buffer);
  expect(code).toBe(error.code);
  expect(error.details).toContain(reason);
  const retry = details.find(({ typeUrl }) => typeUrl.endsWith("RetryInfo"));
  const { seconds = 0n, nanos = 0 } =
    RetryInfo.decode(retry?.value ?? new Uint8Array()).retryDelay ?? {};
  expect(Number(seconds) * 1_000 + nanos / 1e6).toBeGreaterThan(0);
}

function assertNoRepeat(...all: readonly BigUint64Array[]): void {
  const ids = all.flatMap((each) => [...each]);
  expect(new Set(ids).size).toBe(ids.length);
}

test("a flood is refused by answers, no id comes twice, and another caller is not refused", async () => {
  const folder = await ownFolder();
  const server = await serverWith({});
  // Two processes ask for one caller, so that they offer more than the server can answer on a busy machine too.
  const storms = ["storm-1", "storm-2"].map((name) =>
    load(name, server, folder, {
      from: "127.0.0.1",
      connections: 2,
      streams: 1_024,
      callsPerSecond: FLOOD / 2,
      seconds: 300,
    }),
  );
  const more = testDoor() === "fast" ? startH2load(server, folder) : undefined;
  const refusal = await until(
    "the caller of the storm is refused",
    () => refusalOf(server),
    PATIENT,
  );
  assertIsAnswer(refusal, "OVERLOADED");
  const modest = load("modest", server, folder, {
    from: "127.0.0.2",
    connections: 1,
    streams: 64,
    callsPerSecond: 20,
    seconds: SECONDS,
  });
  // The storm of one caller does not take the server away from others.
  expect(await server.api.isServing(30_000)).toBe(true);
  // Whoever looks after it is not refused, nor are its probes.
  for (let i = 0; i < 20; i++) {
    const { tags, nodes } = server.api;
    await server.api.send(tags.getTag.bind(tags), { name: TAG }, 30_000);
    await server.api.send(nodes.getNodeStatus.bind(nodes), {}, 30_000);
    await pause(50);
  }
  const calm = await modest.result();
  more?.kill();
  for (const { child } of storms) child.signal("SIGTERM");
  const floods = await Promise.all(storms.map(({ result }) => result()));
  for (const { answered, refused, reset, offered, unsent } of floods) {
    expect(refused).toBeGreaterThan(0);
    expect(answered).toBeGreaterThan(0);
    expect(reset).toBe(0);
    expect(answered + refused).toBe(offered - unsent);
  }
  expect(calm).toMatchObject({ refused: 0, reset: 0 });
  expect(calm.answered).toBe(calm.offered - calm.unsent);
  expect(calm.answered).toBeGreaterThan(20);
  const all = [...floods, calm];
  assertNoRepeat(...all.map(({ ids }) => ids));
  for (const { ids, answered } of all) expect(ids.length).toBe(answered);
  // Normal again, for the caller of the storm too.
  await until("the overload is over", () => server.process.stderr.includes("not overloaded any"), {
    withinMs: 60_000,
  });
  expect(await refusalOf(server)).toBeUndefined();
});

test("a caller far over its quota is refused by answers, and another one within its own is not", async () => {
  const folder = await ownFolder();
  const server = await serverWith({ IDMINT_QUOTA_CALLER_CALLS: "100" });
  const seconds = isLong ? 60 : 5;
  const start = performance.now();
  const storm = load("storm", server, folder, {
    from: "127.0.0.1",
    connections: 4,
    streams: 256,
    callsPerSecond: 1_000,
    seconds,
  });
  const modest = load("modest", server, folder, {
    from: "127.0.0.2",
    connections: 1,
    streams: 64,
    callsPerSecond: 20,
    seconds,
  });
  const refusal = await until(
    "the caller of the storm is refused",
    () => refusalOf(server),
    PATIENT,
  );
  assertIsAnswer(refusal, "QUOTA_EXCEEDED");
  const [flood, calm] = [await storm.result(), await modest.result()];
  const elapsed = (performance.now() - start) / 1_000;
  expect(flood).toMatchObject({ reset: 0 });
  expect(flood.refused).toBeGreaterThan(flood.answered);
  // The burst, and what the quota allowed meanwhile.
  expect(flood.answered).toBeLessThanOrEqual(100 + 100 * elapsed + 1);
  expect(calm).toMatchObject({ refused: 0, reset: 0 });
  expect(calm.answered).toBe(calm.offered - calm.unsent);
  assertNoRepeat(flood.ids, calm.ids);
});
