// One server in several processes: even, ready and draining as a whole, and no id twice whoever of them dies.
import { createServer } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as pause } from "node:timers/promises";
import { HealthCheckResponse_ServingStatus as ServingStatus } from "@idmint/proto/health";
import { expect, onTestFinished, test } from "vitest";
import { Api } from "../../src/fleet/api.ts";
import { Child, runCli } from "../../src/fleet/child.ts";
import { CLI } from "../../src/program.ts";
import type { Fleet, FleetServer } from "../../src/fleet/fleet.ts";
import { RECORD_BYTES } from "../../src/fleet/record.ts";
import { judge } from "../../src/fleet/uniqueness.ts";
import { until } from "../../src/fleet/until.ts";
import { recordsSize } from "../chaos.ts";
import { isLong, sqliteFile, startFleet } from "../fleet-support.ts";

const PATIENT = { withinMs: 60_000 };

interface Place {
  readonly fleet: Fleet;
  readonly server: FleetServer;
  readonly file: string;
  readonly readyz: () => Promise<{ readonly code: number; readonly body: unknown }>;
}

/** One server of several processes on a SQLite file. */
async function startProcesses(count: number, env: Record<string, string> = {}): Promise<Place> {
  const file = await sqliteFile();
  const fleet = await startFleet({
    servers: 1,
    storeUrl: `sqlite:${file}`,
    env: { IDMINT_PROCESSES: String(count), IDMINT_STORE_TIMEOUT: "30s", ...env },
  });
  // The fleet chose the port of the probes; the log tells it.
  const { httpAddress = "" } = await until(
    "the server says where its probes are",
    () =>
      linesOf(fleet.first).find(({ msg, process }) => msg === "serving" && process === undefined),
    PATIENT,
  );
  const readyz = async (): Promise<{ code: number; body: unknown }> => {
    const answer = await fetch(`http://${httpAddress}/readyz`);
    return { code: answer.status, body: await answer.json() };
  };
  return { fleet, server: fleet.first, file, readyz };
}

interface Line {
  readonly msg: string;
  readonly process?: number;
  readonly pid?: number;
  readonly httpAddress?: string;
  readonly v8Flags?: Readonly<Record<string, string>>;
}

/** What a server logged up to now. */
function linesOf(server: FleetServer): readonly Line[] {
  return server.process.stderr
    .split("\n")
    .filter((line) => line.startsWith("{") && line.endsWith("}"))
    .map((line) => JSON.parse(line) as Line);
}

/** Processes that began to serve so far, oldest first. */
function processesOf(
  server: FleetServer,
): readonly { process: number; pid: number; v8Flags: Line["v8Flags"] }[] {
  return linesOf(server)
    .filter(({ msg, process }) => msg === "serving" && process !== undefined)
    .map(({ process = 0, pid = 0, v8Flags }) => ({ process, pid, v8Flags }));
}

function runs(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** So many connections of their own. */
function connections(server: { readonly address: string }, count: number): readonly Api[] {
  const apis = Array.from({ length: count }, () => new Api(server.address));
  onTestFinished(() => {
    for (const api of apis) api[Symbol.dispose]();
  });
  return apis;
}

async function statusOf(api: Api) {
  return api.send(api.nodes.getNodeStatus.bind(api.nodes), {}, 20_000);
}

/** How many of the connections each process has, the fewest first. */
async function shares(apis: readonly Api[]): Promise<readonly number[]> {
  const counts = new Map<string, number>();
  for (const { nodeId } of await Promise.all(apis.map(statusOf)))
    counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
  return [...counts.values()].toSorted((a, b) => a - b);
}

function lockStore(file: string): Disposable {
  const database = new DatabaseSync(file);
  database.exec("BEGIN IMMEDIATE");
  return {
    [Symbol.dispose]: () => {
      if (!database.isOpen) return;
      database.exec("ROLLBACK");
      database.close();
    },
  };
}

/** A call that waits for the store in each of the processes, and the lock that it waits for. */
async function callsInFlight(apis: readonly Api[], file: string) {
  const [first] = apis;
  await first!.createTag({ name: "waiting" });
  // Known to each process, so that the calls below wait for their grant alone.
  await Promise.all(apis.map((api) => api.getTag("waiting")));
  const lock = lockStore(file);
  onTestFinished(() => lock[Symbol.dispose]());
  const calls = apis.map((api) => api.id("waiting", 60_000).catch((thrown: unknown) => thrown));
  for (const api of apis) {
    const hasArrived = async (): Promise<boolean> => (await statusOf(api)).bufferedTags === 1;
    await until("the call is in flight", hasArrived, PATIENT);
  }
  return { lock, calls };
}

test("connections are spread evenly, also when there are few, and both processes have the flags of V8", async () => {
  const { server, readyz } = await startProcesses(2);
  for (const count of [2, 8, 32]) {
    const apis = connections(server, count);
    expect(await shares(apis)).toEqual([count / 2, count / 2]);
  }
  const flags = processesOf(server).map(({ v8Flags }) => v8Flags);
  const active = { pretenuring: "active", heapGrowth: "active" };
  expect(flags).toEqual([active, active]);
  expect(await readyz()).toEqual({
    code: 200,
    body: { ready: true, state: "SERVING", processes: { total: 2, ready: 2 } },
  });
});

test("two processes on one SQLite file give every id once, and what they did not use goes back when they stop", async () => {
  const { server, fleet } = await startProcesses(2);
  await server.api.createTag({ name: "orders", min: 100, max: 100 });
  const apis = connections(server, 4);
  const ids: bigint[] = [];
  for (let round = 0; round < 200; round++)
    ids.push(...(await Promise.all(apis.map((api) => api.id("orders", 20_000)))));
  expect(new Set(ids).size).toBe(ids.length);
  const processes = processesOf(server);
  expect(new Set(processes.map(({ process }) => process))).toEqual(new Set([1, 2]));
  const { code } = await server.stop();
  expect(code).toBe(0);
  expect(processes.filter(({ pid }) => runs(pid))).toEqual([]);
  const given = linesOf(server).filter(
    ({ msg, process }) => msg === "stopped" && process !== undefined,
  );
  expect(given).toHaveLength(2);
  await fleet.first.start();
  // Two processes hold at most two segments each, and the topmost went back.
  const highest = ids.reduce((one, other) => (one > other ? one : other));
  const next = await server.api.id("orders", 20_000);
  expect(ids).not.toContain(next);
  expect(next).toBeLessThanOrEqual(highest + 301n);
});

test(
  "a process that is killed is started again, callers go on meanwhile, and no id comes twice",
  { timeout: 300_000 },
  async () => {
    const { fleet, server, readyz } = await startProcesses(2);
    await server.api.createTag({ name: "orders", min: 500, max: 500 });
    const load = { tag: "orders", deadlineMs: 10_000 };
    const activities = [{ kind: "id" as const, perSecond: 200, parallel: 4 }];
    const callers = [
      await fleet.startCallers("grpc", { ...load, activities }),
      await fleet.startCallers("grpc", { ...load, activities }),
      await fleet.startCallers("sdk", {
        ...load,
        activities: [{ kind: "next", perSecond: 500 }],
        min: 50,
        max: 50,
      }),
    ];
    const go = async (): Promise<void> => {
      const goals = callers.map((each) => recordsSize(fleet, each) + 50 * RECORD_BYTES);
      await until(
        "all callers receive ids",
        () => callers.every((each, at) => recordsSize(fleet, each) > (goals[at] ?? 0)),
        PATIENT,
      );
    };
    await go();
    for (let kill = 0; kill < (isLong ? 20 : 2); kill++) {
      const living = processesOf(server).filter(({ pid }) => runs(pid));
      const victim = living[kill % living.length]!;
      const before = processesOf(server).length;
      process.kill(victim.pid, "SIGKILL");
      await go();
      const next = await until(
        "the process is back",
        () =>
          processesOf(server)
            .slice(before)
            .find(({ process }) => process === victim.process),
        PATIENT,
      );
      expect(next.pid).not.toBe(victim.pid);
      await until(
        "all are ready",
        async () => {
          const { code, body } = await readyz();
          // The other one was there all the time.
          expect(code).toBe(200);
          return (body as { state: string }).state === "SERVING";
        },
        PATIENT,
      );
    }
    for (const each of callers) {
      const report = await fleet.stopCallers(each);
      expect(report.answered).toBeGreaterThan(0);
    }
    const verdict = judge(fleet.records);
    expect(verdict.repeated).toBe(0);
    expect(verdict.distinct).toBeGreaterThan(150);
    const ended = linesOf(server).filter(({ msg }) => msg.startsWith("a process ended by itself"));
    expect(ended).toHaveLength(isLong ? 20 : 2);
    expect((await server.stop()).code).toBe(0);
  },
);

test("told to stop, every process says NOT_SERVING and refuses at once, what is in flight is answered, and all end with 0", async () => {
  const { server, file, readyz } = await startProcesses(2, { IDMINT_DRAIN_TIME: "5min" });
  const apis = connections(server, 4);
  expect(await shares(apis)).toEqual([2, 2]);
  const watched = apis.map((api) => {
    const seen: ServingStatus[] = [];
    const watch = api.health.watch({ service: "" });
    watch.on("data", ({ status }: { status: ServingStatus }) => seen.push(status));
    watch.on("error", () => undefined);
    onTestFinished(() => watch.cancel());
    return seen;
  });
  await until(
    "all are watched",
    () => watched.every((seen) => seen.at(-1) === ServingStatus.SERVING),
    PATIENT,
  );
  const { lock, calls } = await callsInFlight(apis, file);
  const pids = processesOf(server).map(({ pid }) => pid);
  server.process.signal("SIGTERM");
  await until(
    "every process says NOT_SERVING",
    () => watched.every((seen) => seen.at(-1) === ServingStatus.NOT_SERVING),
    PATIENT,
  );
  for (const api of apis)
    await expect(api.id("waiting")).rejects.toMatchObject({ reason: "DRAINING" });
  expect(await readyz()).toMatchObject({ code: 503, body: { ready: false, state: "DRAINING" } });
  lock[Symbol.dispose]();
  const ids = await Promise.all(calls);
  expect(new Set(ids).size).toBe(4);
  for (const id of ids) expect(id).toBeTypeOf("bigint");
  expect(await server.process.waitForEnd(60_000)).toEqual({ code: 0, signal: null });
  expect(pids.filter(runs)).toEqual([]);
});

test("a second signal ends all processes at once", async () => {
  const { server, file } = await startProcesses(2, { IDMINT_DRAIN_TIME: "5min" });
  const apis = connections(server, 2);
  expect(await shares(apis)).toEqual([1, 1]);
  const { calls } = await callsInFlight(apis, file);
  const pids = processesOf(server).map(({ pid }) => pid);
  server.process.signal("SIGINT");
  await until("it says NOT_SERVING", async () => !(await apis[0]!.isServing(10_000)), PATIENT);
  server.process.signal("SIGINT");
  expect(await server.process.waitForEnd(20_000)).toEqual({ code: 1, signal: null });
  await until("no process is left", () => !pids.some(runs), PATIENT);
  for (const outcome of await Promise.all(calls))
    expect(outcome).toMatchObject({ code: "UNAVAILABLE" });
});

test("processes leave Ctrl-C to their parent; SIGTERM ends the one it is sent to, and another follows", async () => {
  const { server } = await startProcesses(2);
  const before = processesOf(server);
  for (const { pid } of before) process.kill(pid, "SIGINT");
  await pause(300);
  expect(before.every(({ pid }) => runs(pid))).toBe(true);
  expect(await server.api.isServing(10_000)).toBe(true);
  const [one] = before;
  process.kill(one!.pid, "SIGTERM");
  await until("another one follows", () => processesOf(server).length === 3, PATIENT);
  expect(processesOf(server).at(-1)!.process).toBe(one!.process);
  expect(linesOf(server)).toContainEqual(
    expect.objectContaining({ msg: "stopped", process: one!.process, pid: one!.pid }),
  );
  expect(linesOf(server).filter(({ msg }) => msg.startsWith("a process ended by itself"))).toEqual(
    [],
  );
});

test("processes whose parent dies give back what they did not use, and end", async () => {
  const { server } = await startProcesses(2);
  await server.api.createTag({ name: "orders", min: 1_000, max: 1_000 });
  expect(await server.api.id("orders", 20_000)).toBe(1n);
  const pids = processesOf(server).map(({ pid }) => pid);
  server.process.signal("SIGKILL");
  await until("no process is left", () => !pids.some(runs), PATIENT);
  await server.start();
  expect(await server.api.id("orders", 20_000)).toBe(2n);
});

test("what keeps a server from starting is said in the same words, and nothing is left behind", async () => {
  const file = await sqliteFile();
  const other = createServer();
  await new Promise<void>((resolve) => {
    other.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => void other.close());
  const { port } = other.address() as { port: number };
  const free = "127.0.0.1:0";
  const common = { IDMINT_STORE_URL: `sqlite:${file}`, IDMINT_HTTP_ADDRESS: free };
  const faults: Record<string, { env: Record<string, string>; code: number; said: string }> = {
    busy: {
      env: { IDMINT_GRPC_ADDRESS: `127.0.0.1:${port}` },
      code: 2,
      said: "is taken by another program",
    },
    missing: { env: { IDMINT_GRPC_ADDRESS: free }, code: 1, said: "SCHEMA_MISMATCH" },
  };
  // A port is looked at when the store is there.
  const migrated = await runCli(["migrate"], { IDMINT_STORE_URL: `sqlite:${file}` });
  expect(migrated.code).toBe(0);
  for (const [name, { env, code, said }] of Object.entries(faults)) {
    const store = name === "missing" ? { IDMINT_STORE_URL: `sqlite:${file}.none` } : {};
    const all = { ...common, ...env, ...store, IDMINT_LOG_LEVEL: "warn" };
    const alone = await runCli(["serve"], all);
    const several = await runCli(["serve", "--processes", "3"], {
      ...all,
      IDMINT_LOG_LEVEL: "silent",
    });
    expect([alone.code, several.code]).toEqual([code, code]);
    expect(alone.stderr).toContain(said);
    expect(several.stderr).toBe(alone.stderr);
    expect(several.stdout).toBe("");
  }
});

test("start-dev runs in several processes too, and makes its tag once", async () => {
  const file = await sqliteFile();
  const child = new Child(CLI, ["start-dev", "--processes", "3"], {
    name: "start-dev",
    env: {
      IDMINT_STORE_URL: `sqlite:${file}`,
      IDMINT_GRPC_ADDRESS: "127.0.0.1:0",
      IDMINT_HTTP_ADDRESS: "127.0.0.1:0",
    },
  });
  onTestFinished(async () => void (await child.kill()));
  const address = await until(
    "the banner is there",
    () => /listens for gRPC on (\S+),/.exec(child.stderr)?.[1],
    PATIENT,
  );
  const apis = connections({ address }, 3);
  expect(await shares(apis)).toEqual([1, 1, 1]);
  const ids = await Promise.all(apis.map((api) => api.id("demo", 20_000)));
  expect(new Set(ids).size).toBe(3);
  child.signal("SIGINT");
  expect(await child.waitForEnd(60_000)).toEqual({ code: 0, signal: null });
});
