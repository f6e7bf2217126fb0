import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { serve, temporaryFolder } from "../../spawn.ts";
import { devServer } from "../../dev-server.ts";
import { installIn, onTerminal } from "../../terminal.ts";

const server = devServer();

interface Printed {
  readonly calls: number;
  readonly ids: string;
  readonly repeats: number;
  readonly ended: string;
}

const isLong = process.env["IDMINT_LONG"] === "1";
const CALLS = isLong ? 100_000 : 300;
const STOPPED_MS = 1_500;

const RUNS: readonly (readonly [args: readonly string[], idsOfACall: number])[] = [
  [["--mode", "call", "--connections", "2"], 1],
  [["--mode", "batch", "--count", "700"], 700],
  [["--mode", "stream"], 1],
  [["--mode", "sdk"], 1],
];
const MORE_RUNS: typeof RUNS = [
  [["--mode", "call", "--kind", "sequence"], 1],
  [["--mode", "stream", "--kind", "object-id"], 1],
];

test.each(isLong ? [...RUNS, ...MORE_RUNS] : RUNS)("%j mints every id once", async (args, each) => {
  const limits = ["--calls", String(CALLS), "--duration", "2m"];
  const run = await server.json<Printed>("bench", ...limits, ...args);
  expect(run).toMatchObject({ calls: CALLS, ids: String(CALLS * each), repeats: 0, ended: "over" });
});

test("no run leaves a tag behind, and no bar in a pipe", async () => {
  const { exitCode, out, err } = await server.idmint("bench", "--duration", "1s");
  expect([exitCode, err]).toEqual([0, ""]);
  expect(out).not.toContain("%");
  const { tags } = await server.json<{ tags: { name: string }[] }>("tag", "list");
  expect(tags.map(({ name }) => name)).toEqual(["demo"]);
});

test.runIf(isLong)(
  "a server that stops for a while is charged for all calls that were due; a terminal shows a bar",
  async () => {
    const { folder, remove } = temporaryFolder();
    onTestFinished(remove);
    installIn(folder);
    const { child, grpcAddress, stop } = await serve(["start-dev"], { cwd: folder });
    onTestFinished(async () => {
      child.kill("SIGCONT");
      await stop();
    });
    const bench = onTerminal(`'${folder}/idmint' bench --rate 200 --duration 4s`, {
      IDMINT_ADDRESS: grpcAddress,
    });
    onTestFinished(bench.end);
    await bench.until(/\[#*\.+\] +\d+ % {2}\d+ calls {2}\d+ a second {2}p99 [\d.e+]+ ms/);
    child.kill("SIGSTOP");
    await sleep(STOPPED_MS);
    child.kill("SIGCONT");
    await bench.until(/latency max/);
    const [, p90 = ""] = /latency p90 +([\d.]+) ms/.exec(bench.screen()) ?? [];
    // 300 of 800 calls were due while it stood still, and waited for up to that time. The commonest error, to count from when
    // a call was sent after the ones before were answered, would see a few slow calls among 500 quick ones.
    expect(Number(p90)).toBeGreaterThan(STOPPED_MS / 4);
    expect(bench.screen()).toMatch(/repeated ids +0/);
  },
);
