// All worker ids of a small layout, held by servers and by processes of the SDK whose clocks differ, that are killed, frozen
// for longer than their leases last, and started with a clock that is an hour behind.
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { credentials } from "@grpc/grpc-js";
import { IdmintError } from "@idmint/client";
import { decode, timeOf, WORKER_TTL_MS } from "@idmint/core";
import {
  LeaseWorkerRequest,
  ListWorkersRequest,
  type Worker,
  type WorkerRegistry,
} from "@idmint/proto";
import { WorkerServiceClient } from "@idmint/proto/grpc-js";
import { expect, onTestFinished } from "vitest";
import { FakeWallClock } from "../../../src/faketime.ts";
import type { Fleet, FleetServer } from "../../../src/fleet/fleet.ts";
import { Recorder } from "../../../src/fleet/record.ts";
import { judge } from "../../../src/fleet/uniqueness.ts";
import { until } from "../../../src/fleet/until.ts";
import { EXPECTED } from "../../chaos.ts";
import { isLong, seededRandom, startFleet } from "../../fleet-support.ts";
import { Crew, layout, TAG } from "./worker-crew.ts";

/** Where the worker ids of a test are. */
export interface WorkerStage {
  readonly storeUrl: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly registry: WorkerRegistry;
  /** The registry's clock is that of its servers: they have one, as on one machine. */
  readonly hasOneClock: boolean;
  /** Whether nobody can write to the registry at this moment, because a frozen process has it locked. */
  isLocked?(): boolean;
  /** Makes leases end now, as if their whole ttl had gone by since they were renewed. */
  endLeases(instances: readonly string[]): Promise<void>;
}

const bits = { timeBits: 41, workerBits: 5, sequenceBits: 12 };
const SERVERS = 2;
const CREW_SIZES = [10, 10, 10] as const;
/** Kills and restarts of servers, and as many of the SDK's processes. */
const LOOPS = isLong ? 100 : 2;
const MAX_SKEW_MS = 2_000;
const HOUR_MS = 3_600_000;
/** Longer than most of what is reserved for the frozen ones; the others wait for the rest. */
const SHORT_FREEZE_MS = 4_000;
/**
 * How long whoever may issue again takes at most for its first id. It takes less than 2 s on a machine that has nothing
 * else to do; what took longer than this hangs.
 */
const RESUME_MS = 15_000;
const CLOCK_BACK = "CLOCK_MOVED_BACKWARDS";
const NOT_CONFIRMED = "CLOCK_NOT_CONFIRMED";
const EXHAUSTED = "WORKER_IDS_EXHAUSTED";

export const TEST_TIMEOUT_MS: number = isLong ? 1_800_000 : 120_000;

/** Everything of one test. */
class Scene {
  readonly fleet: Fleet;
  readonly stage: WorkerStage;
  readonly crews: readonly Crew[];
  readonly clocks: readonly FakeWallClock[];
  readonly below: (limit: number) => number;
  readonly recorder: Recorder;
  readonly records: string;
  /** How long it took until ids were made again, by what had happened, in milliseconds. */
  readonly resumedMs = new Map<string, number[]>();
  readonly #workers: WorkerServiceClient;
  readonly #serverSkewMs: number;

  constructor(
    fleet: Fleet,
    stage: WorkerStage,
    clocks: readonly FakeWallClock[],
    below: (limit: number) => number,
  ) {
    this.fleet = fleet;
    this.stage = stage;
    this.clocks = clocks;
    this.below = below;
    this.#serverSkewMs = this.skewMs();
    this.crews = CREW_SIZES.map((size, at) => new Crew(fleet, `crew-${at}`, size, this.skewMs()));
    this.records = path.join(fleet.folder, "test.ids");
    this.recorder = new Recorder(this.records);
    this.#workers = new WorkerServiceClient(fleet.first.address, credentials.createInsecure());
    onTestFinished(() => this.#workers.close());
    for (const clock of clocks) clock.set(this.#serverSkewMs);
  }

  skewMs(): number {
    return this.below(2 * MAX_SKEW_MS + 1) - MAX_SKEW_MS;
  }

  serverSkewMs(): number {
    return this.stage.hasOneClock ? this.#serverSkewMs : this.skewMs();
  }

  clockOf(server: FleetServer): FakeWallClock {
    const clock = this.clocks[this.fleet.servers.indexOf(server)] ?? this.clocks[0];
    if (clock === undefined) throw new Error("a server without a clock");
    return clock;
  }

  /** One id of a server, recorded. */
  async id(server: FleetServer): Promise<bigint> {
    const id = await server.api.id(TAG, 500);
    this.recorder.id(0, id);
    return id;
  }

  /** Why a server makes none; undefined when it made one. */
  async reasonOf(server: FleetServer): Promise<string | undefined> {
    try {
      await this.id(server);
      return undefined;
    } catch (thrown) {
      return IdmintError.from(thrown).reason;
    }
  }

  /** Waits for an id of a server; answers how long that took, in milliseconds. */
  async resumed(server: FleetServer, withinMs = 30_000): Promise<number> {
    const start = performance.now();
    await until(`${server.name} issues`, () => this.id(server), { withinMs });
    return performance.now() - start;
  }

  note(what: string, ms: number): void {
    this.resumedMs.set(what, [...(this.resumedMs.get(what) ?? []), Math.round(ms)]);
  }

  /** Waits until no lease counts as over. */
  async renewed(): Promise<void> {
    await until("all leases are renewed", async () =>
      (await this.workers()).every(({ leased }) => leased),
    );
  }

  async workers(): Promise<readonly Worker[]> {
    const request = ListWorkersRequest.fromPartial({ tag: TAG, pageSize: 1_000 });
    const call = this.#workers.listWorkers.bind(this.#workers);
    return (await this.fleet.first.api.send(call, request)).workers;
  }

  /** One worker id more than there are. */
  async expectFull(): Promise<void> {
    const instance = `one-too-many-${this.below(1_000_000)}`;
    const request = LeaseWorkerRequest.fromPartial({ tag: TAG, instance });
    const call = this.#workers.leaseWorker.bind(this.#workers);
    const answer = this.fleet.first.api.send(call, request);
    await expect(answer).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED", reason: EXHAUSTED });
  }
}

async function startScene(stage: WorkerStage): Promise<Scene> {
  const { seed, below } = seededRandom();
  console.log(`seed ${seed}`);
  const clocks = Array.from(
    { length: stage.hasOneClock ? 1 : SERVERS },
    () => new FakeWallClock(0),
  );
  onTestFinished(() => clocks.forEach((clock) => clock[Symbol.dispose]()));
  const envOf = Array.from({ length: SERVERS }, (_, at) => ({
    ...(clocks[at] ?? clocks[0])?.env,
    IDMINT_INSTANCE: instanceOf(at),
  }));
  const { storeUrl, env = {}, registry } = stage;
  const fleet = await startFleet({ servers: SERVERS, storeUrl, env, envOf });
  await fleet.first.api.createSnowflake(TAG, bits, { registry });
  const scene = new Scene(fleet, stage, clocks, below);
  for (const server of fleet.servers) await scene.resumed(server);
  await Promise.all(scene.crews.map((crew) => crew.start()));
  await Promise.all(scene.crews.map((crew) => crew.resumed(0)));
  return scene;
}

function instanceOf(server: number): string {
  return `server-${server}`;
}

type Disturbance = "frozen" | "killed" | "killed, and an hour behind";

/** What is done in which turn. */
function howIn(turn: number): Disturbance {
  if (turn % 5 === 1) return "killed, and an hour behind";
  return turn % 10 === 8 ? "frozen" : "killed";
}

async function disturbCrew(scene: Scene, crew: Crew, how: Disturbance): Promise<void> {
  if (how === "frozen") {
    crew.child.signal("SIGSTOP");
    await pause(SHORT_FREEZE_MS);
    const { mark } = crew;
    crew.child.signal("SIGCONT");
    scene.note(`SDK ${how}`, await crew.resumed(mark));
    return;
  }
  await crew.child.kill();
  if (how === "killed") {
    crew.clock.set(scene.skewMs());
    await crew.start();
    scene.note(`SDK ${how}`, await crew.resumed(0));
    return;
  }
  crew.clock.set(-HOUR_MS);
  await crew.start();
  await crew.refused(CLOCK_BACK);
  expect([...crew.workers(0)], "ids of an hour ago").toEqual([]);
  crew.clock.set(scene.skewMs());
  scene.note(`SDK ${how}`, await crew.resumed(crew.mark));
}

/** Stops a server where it is, but not in the middle of what all others would have to wait for. */
async function freeze(scene: Scene, { name, process }: FleetServer): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    process.signal("SIGSTOP");
    await pause(20);
    if (scene.stage.isLocked?.() !== true) return;
    process.signal("SIGCONT");
    await pause(20);
  }
  throw new Error(`${name} keeps the registry locked`);
}

async function disturbServer(scene: Scene, server: FleetServer, how: Disturbance): Promise<void> {
  const clock = scene.clockOf(server);
  const skewMs = scene.serverSkewMs();
  if (how === "frozen") {
    await freeze(scene, server);
    await pause(SHORT_FREEZE_MS);
    server.process.signal("SIGCONT");
    scene.note(`server ${how}`, await scene.resumed(server));
    return;
  }
  await server.kill();
  if (how === "killed") {
    if (!scene.stage.hasOneClock) clock.set(skewMs);
    await server.start();
    scene.note(`server ${how}`, await scene.resumed(server));
    return;
  }
  clock.set(-HOUR_MS);
  server.spawn();
  await until("it listens", () => server.listens, { withinMs: 60_000 });
  const refusal = scene.stage.hasOneClock ? CLOCK_BACK : NOT_CONFIRMED;
  const refuses = async (): Promise<boolean> => (await scene.reasonOf(server)) === refusal;
  await until("it refuses", refuses);
  clock.set(skewMs);
  if (refusal === NOT_CONFIRMED) {
    // Its peers contradicted its clock when it started, so it makes nothing until it is started anew.
    await server.kill();
    await server.start();
  }
  scene.note(`server ${how}`, await scene.resumed(server));
  // What was renewed by a registry that was an hour behind ended an hour ago, until it is renewed again.
  if (scene.stage.hasOneClock) await scene.renewed();
}

/**
 * What processes issue that were frozen and whose worker ids others took over meanwhile. It may be ids that they had made,
 * or passed over, when they were frozen: their reservations of then have them, and those who took over began above.
 */
function expectWithin(reserved: readonly Worker[], crew: Crew, mark: number): void {
  for (const { id, client } of crew.ids(mark)) {
    const { worker, tick } = decode(layout, id);
    const row = reserved.find(({ workerId }) => workerId === worker);
    expect(row?.instance, `${id} of worker id ${worker}`).toBe(crew.instances[client]);
    const until = row?.reservedUntilTime?.getTime() ?? 0;
    expect(timeOf(layout, tick), `time of ${id} of ${row?.instance}`).toBeLessThanOrEqual(until);
  }
}

/**
 * Freezes a server and a process of the SDK for longer than their leases last, lets others take their worker ids over, and
 * wakes them: first while the others hold them, then with worker ids free again.
 */
async function takeOver(scene: Scene, server: FleetServer, crew: Crew): Promise<void> {
  const { fleet, stage } = scene;
  const own = decode(layout, await scene.id(server)).worker;
  const before = new Set([own, ...crew.workers(0).values()]);
  expect(before.size).toBe(crew.instances.length + 1);
  const frozenAt = performance.now();
  await freeze(scene, server);
  crew.child.signal("SIGSTOP");
  const others = new Crew(fleet, "newcomers", before.size, scene.skewMs());
  await others.start();
  await others.refused(EXHAUSTED);
  expect(others.workers(0).size).toBe(0);
  const reserved = await scene.workers();
  if (!isLong) {
    await pause(SHORT_FREEZE_MS);
    await stage.endLeases([...crew.instances, instanceOf(fleet.servers.indexOf(server))]);
  }
  await others.resumed(0, 2 * WORKER_TTL_MS);
  const takenAfterMs = performance.now() - frozenAt;
  if (isLong) expect(takenAfterMs).toBeGreaterThan(WORKER_TTL_MS - 2_000);
  expect(new Set(others.workers(0).values())).toEqual(before);
  if (isLong) await pause(3 * WORKER_TTL_MS - takenAfterMs);
  const { mark } = crew;
  crew.child.signal("SIGCONT");
  server.process.signal("SIGCONT");
  await crew.refused(EXHAUSTED);
  const refuses = async (): Promise<boolean> => (await scene.reasonOf(server)) === EXHAUSTED;
  await until("it is refused", refuses);
  expectWithin(reserved, crew, mark);
  const { errors } = await fleet.stopCallers(others.child);
  console.log(`taken over after ${Math.round(takenAfterMs)} ms`, errors);
  // Who was renewing a lease in that moment does not give it back: it ends by itself.
  if (!isLong) await stage.endLeases(others.instances);
  const withinMs = 2 * WORKER_TTL_MS;
  const awake = [crew.resumed(mark, withinMs), scene.resumed(server, withinMs)];
  const [crewMs = 0, serverMs = 0] = await Promise.all(awake);
  // What the others had reserved, by their clock, must be over too.
  console.log(`issue again ${Math.round(crewMs)} and ${Math.round(serverMs)} ms after the others`);
}

/** Kills and restarts servers and crews; all of it is judged at the end. */
export async function holdWorkerIds(stage: WorkerStage): Promise<void> {
  const scene = await startScene(stage);
  const { fleet, crews, below } = scene;
  await scene.expectFull();
  const activities = [
    { kind: "id", perSecond: 40, parallel: 4 },
    { kind: "segments", perSecond: 10, count: 500, parallel: 4 },
  ] as const;
  const callers = await fleet.startCallers("grpc", { tag: TAG, activities, deadlineMs: 500 });
  const asleep = { server: fleet.servers[1]!, crew: crews[2]! };
  let isAsleep = true;
  const freezing = takeOver(scene, asleep.server, asleep.crew).finally(() => (isAsleep = false));
  freezing.catch(() => undefined);
  const done = { servers: 0, crews: 0 };
  for (let loop = 1; done.servers < LOOPS || done.crews < LOOPS; loop++) {
    const work: { readonly how: Disturbance; readonly run: () => Promise<void> }[] = [];
    // One server answers the SDK's processes; the other one is asleep at first.
    if (!isAsleep && done.servers < LOOPS) {
      const how = howIn(done.servers++);
      const server = fleet.servers[below(SERVERS)]!;
      work.push({ how, run: () => disturbServer(scene, server, how) });
    }
    if (done.crews < LOOPS) {
      const how = howIn(done.crews++);
      const crew = crews[below(isAsleep ? 2 : 3)]!;
      work.push({ how, run: () => disturbCrew(scene, crew, how) });
    }
    // A registry may have the clock of a server that is behind: nobody else is looked at meanwhile.
    if (work.some(({ how }) => how === "killed, and an hour behind")) {
      for (const { run } of work) await run();
    } else {
      await Promise.all(work.map(({ run }) => run()));
    }
    if (work.length === 0) await pause(200);
    else if (!isAsleep && loop % 5 === 0) await scene.expectFull();
  }
  await freezing;
  await scene.expectFull();
  const ends = [callers, ...crews.map((crew) => crew.child)];
  const reports = await Promise.all(ends.map((child) => fleet.stopCallers(child)));
  scene.recorder.close();
  judgeAll(scene, done, reports);
}

function judgeAll(
  scene: Scene,
  done: { readonly servers: number; readonly crews: number },
  reports: readonly { readonly errors: Readonly<Record<string, number>> }[],
): void {
  const { received, distinct, repeats } = judge([...scene.fleet.records, scene.records]);
  const errors = reports.map((report) => report.errors);
  console.log(`${received} ids`, done, errors);
  for (const [what, times] of scene.resumedMs) {
    const sorted = times.toSorted((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)];
    console.log(`${what}: ${times.length} times, ids after ${median} ms, at most ${sorted.at(-1)}`);
  }
  expect(repeats).toEqual([]);
  expect(received).toBe(distinct);
  expect(received).toBeGreaterThan(500 * LOOPS);
  const slow = [...scene.resumedMs].filter(([, times]) => Math.max(...times) > RESUME_MS);
  expect(slow).toEqual([]);
  const known = new Set([
    ...EXPECTED,
    `UNAVAILABLE ${CLOCK_BACK}`,
    `RESOURCE_EXHAUSTED ${EXHAUSTED}`,
    // Its peers contradict it, or a store whose clock is the server's own has shown the wrong one last.
    `UNAVAILABLE ${NOT_CONFIRMED}`,
  ]);
  expect(errors.flatMap(Object.keys).filter((name) => !known.has(name))).toEqual([]);
}
