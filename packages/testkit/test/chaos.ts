// Servers and callers killed at random while ids are minted, and what must be true afterwards.
import { statSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { expect } from "vitest";
import type { Child } from "../src/fleet/child.ts";
import type { Fleet, FleetServer } from "../src/fleet/fleet.ts";
import type { Activity, LoadReport } from "../src/fleet/load-config.ts";
import { judge, type Verdict } from "../src/fleet/uniqueness.ts";
import { until } from "../src/fleet/until.ts";
import { isLong, seededRandom } from "./fleet-support.ts";

/** A fault of the store, once. It resolves when the store is well again. */
export interface StoreFault {
  readonly atSecond: number;
  readonly name: string;
  /** Grants of each server that may be burned with it, since nobody learns their outcome. */
  readonly unknownGrants: number;
  readonly run: () => Promise<void>;
}

export interface ChaosOptions {
  readonly tag: string;
  readonly seconds: number;
  readonly storeFaults: readonly StoreFault[];
}

/** Ids of every segment that a server takes, and that an SDK takes: fixed, so that gaps can be reckoned. */
export const SERVER_SEGMENT = 2_000;
export const SDK_SEGMENT = 100;

/** Six processes of callers by the SDK, each with another habit. */
const SDK_MIXES: readonly (readonly Activity[])[] = [
  [{ kind: "next", perSecond: 150 }],
  [{ kind: "next", perSecond: 100, parallel: 8 }],
  [{ kind: "sync", perSecond: 200 }],
  [{ kind: "take", perSecond: 20, count: 7 }],
  [{ kind: "take", perSecond: 5, count: SDK_SEGMENT }],
  [
    { kind: "next", perSecond: 30 },
    { kind: "string", perSecond: 30 },
    { kind: "sync", perSecond: 30 },
    { kind: "take", perSecond: 5, count: 30 },
  ],
];

/** Two processes of callers by plain gRPC. */
const GRPC_MIXES: readonly (readonly Activity[])[] = [
  [{ kind: "id", perSecond: 60, parallel: 16 }],
  [
    { kind: "segments", perSecond: 10, count: 50, parallel: 4 },
    { kind: "list", perSecond: 10, count: 20, parallel: 4 },
  ],
];

/** Refusals that callers must expect while servers and stores are down; any other is a fault. */
export const EXPECTED: ReadonlySet<string> = new Set([
  "UNAVAILABLE SEGMENT_NOT_READY",
  "UNAVAILABLE STORE_UNAVAILABLE",
  "UNAVAILABLE SERVER_UNAVAILABLE",
  "UNAVAILABLE DRAINING",
  "DEADLINE_EXCEEDED DEADLINE_EXCEEDED",
]);

/** A server is not begun again sooner than this after it was begun, so that a dead store costs no machine. */
const RESTART_MS = 1_000;

/** Everybody goes on within so long after the last fault. */
const RESUMED_MS = 5_000;

interface Caller {
  readonly mix: readonly Activity[];
  /** Fulfils when it has started. */
  process: Promise<Child>;
}

/**
 * Kills a random server and a random SDK process every second, whatever the store does, and asks others to stop, so that
 * ids are given back and issued again meanwhile; then checks everything.
 */
export async function chaos(fleet: Fleet, options: ChaosOptions): Promise<void> {
  const { tag, seconds, storeFaults } = options;
  const { seed, below } = seededRandom();
  console.log(`seed ${seed}`);
  await fleet.first.api.createTag({ name: tag, min: SERVER_SEGMENT, max: SERVER_SEGMENT });
  const startSdk = (activities: readonly Activity[]): Promise<Child> => {
    const started = fleet.startCallers("sdk", {
      tag,
      activities,
      min: SDK_SEGMENT,
      max: SDK_SEGMENT,
      deadlineMs: 2_000,
      rpcDeadlineMs: 1_000,
    });
    // Looked at when it is needed; until then a failure is not unhandled.
    started.catch(() => undefined);
    return started;
  };
  const sdk: readonly Caller[] = SDK_MIXES.map((mix) => ({ mix, process: startSdk(mix) }));
  await Promise.all(sdk.map(({ process }) => process));
  const grpc = await Promise.all(
    GRPC_MIXES.map((activities) =>
      fleet.startCallers("grpc", { tag, activities, deadlineMs: 1_500 }),
    ),
  );
  const keeper = keepRunning(fleet.servers);
  const begun = performance.now();
  // One after the other: on a busy machine a store may still be starting when the next fault is due.
  const faults = (async () => {
    for (const { atSecond, name, run } of storeFaults) {
      await pause(Math.max(0, begun + atSecond * 1_000 - performance.now()));
      console.log(`step ${atSecond}: ${name}`);
      await run();
    }
  })();
  const ends = { serverKills: 0, serverStops: 0, sdkKills: 0, sdkStops: 0 };
  const stopped: Promise<LoadReport>[] = [];
  const steps: string[] = [];
  const random = <T>(list: readonly T[]): T | undefined => list[below(Math.max(1, list.length))];
  const start = performance.now();
  for (let step = 1; step <= seconds; step++) {
    await pause(Math.max(0, start + step * 1_000 - performance.now()));
    // Mostly one that takes calls: on a busy machine none would live long enough to take any.
    const anyAge = below(4) === 0;
    const server = random(fleet.servers.filter(({ runs, listens }) => (anyAge ? runs : listens)));
    if (server !== undefined) {
      steps.push(`${step}: SIGKILL ${server.name}${server.listens ? "" : " while it starts"}`);
      await server.kill();
      ends.serverKills++;
    }
    const killed = random(sdk)!;
    steps.push(`${step}: SIGKILL callers ${sdk.indexOf(killed)}`);
    await (await killed.process).kill();
    killed.process = startSdk(killed.mix);
    ends.sdkKills++;
    if (step % 3 !== 0) continue;
    const told = random(fleet.servers.filter(({ listens }) => listens));
    if (told?.process.signal("SIGTERM") === true) {
      steps.push(`${step}: SIGTERM ${told.name}`);
      ends.serverStops++;
    }
    const asked = random(sdk)!;
    steps.push(`${step}: SIGTERM callers ${sdk.indexOf(asked)}`);
    const report = fleet.stopCallers(await asked.process);
    report.catch(() => undefined);
    stopped.push(report);
    asked.process = startSdk(asked.mix);
    ends.sdkStops++;
  }
  await faults;
  console.log(steps.join("; "));
  await keeper.stop();
  const callers = [...(await Promise.all(sdk.map(({ process }) => process))), ...grpc];
  const resumedMs = await resumed(fleet, callers);
  const reports = await Promise.all([
    ...stopped,
    ...callers.map((child) => fleet.stopCallers(child)),
  ]);
  const exits = await Promise.all(fleet.servers.map((server) => server.stop()));
  expect(exits.map(({ code }) => code)).toEqual(fleet.servers.map(() => 0));
  await fleet.first.start();
  const { floor } = await fleet.first.api.getTag(tag);
  const verdict = judge(fleet.records);
  const unknownGrants =
    fleet.servers.length * storeFaults.reduce((sum, fault) => sum + fault.unknownGrants, 0);
  report(verdict, reports, { ...ends, serverStarts: keeper.starts(), resumedMs });
  expectUnique(verdict);
  // The short form runs beside much else, where nothing is promised of time.
  if (isLong) expect(resumedMs).toBeLessThan(RESUMED_MS);
  expectGaps(verdict, floor, {
    serverEnds: ends.serverKills + ends.serverStops + fleet.servers.length,
    sdkEnds: ends.sdkKills + ends.sdkStops + sdk.length,
    unknownGrants,
  });
  expectOnlyUnavailable(reports);
}

/** Starts servers again that ended, as a service manager would. */
function keepRunning(servers: readonly FleetServer[]): {
  readonly stop: () => Promise<void>;
  readonly starts: () => number;
} {
  const told = new AbortController();
  let starts = 0;
  const watch = async (): Promise<void> => {
    while (!told.signal.aborted) {
      for (const server of servers) {
        if (server.runs || server.ageMs < RESTART_MS) continue;
        server.spawn();
        starts++;
      }
      await pause(100);
    }
  };
  const watching = watch();
  return {
    starts: () => starts,
    stop: async () => {
      told.abort();
      await watching;
      for (const server of servers) {
        // One that was told to stop may still be ending.
        const takesCalls = async (): Promise<boolean> => {
          if (!server.runs) server.spawn();
          return server.api.isServing();
        };
        await until(`${server.name} takes calls`, takesCalls, { withinMs: 60_000, everyMs: 200 });
      }
    },
  };
}

/** Waits until every process of callers that runs received something new. Answers how long that took. */
async function resumed(fleet: Fleet, callers: readonly Child[]): Promise<number> {
  const start = performance.now();
  const sizes = callers.map((child) => recordsSize(fleet, child));
  await until(
    "every caller goes on",
    () => callers.every((child, at) => recordsSize(fleet, child) > sizes[at]!),
    { withinMs: 30_000 },
  );
  return performance.now() - start;
}

/** Bytes of a caller's records so far: they grow with every answer. */
export function recordsSize(fleet: Fleet, child: Child): number {
  return statSync(fleet.recordsOf(child), { throwIfNoEntry: false })?.size ?? 0;
}

function report(
  verdict: Verdict,
  reports: readonly LoadReport[],
  counts: Readonly<Record<string, number>>,
): void {
  const errors: Record<string, number> = {};
  for (const each of reports) {
    for (const [name, count] of Object.entries(each.errors))
      errors[name] = (errors[name] ?? 0) + count;
  }
  const { received, distinct, repeated, records, gaps, callsInVain, idsInVain } = verdict;
  console.log(
    { ...counts, records, received, distinct, repeated, gaps, callsInVain, idsInVain },
    "refusals of the callers that were not killed:",
    errors,
    `answers a second: ${verdict.answersPerSecond.join(" ")}`,
  );
}

/** Not one id twice, over all that any caller received. */
function expectUnique(verdict: Verdict): void {
  expect(verdict.repeats).toEqual([]);
  expect(verdict.repeated).toBe(0);
  // Without ids there is nothing to be proud of.
  expect(verdict.distinct).toBeGreaterThan(1_000);
}

/**
 * Gaps: every id up to the floor that nobody received, against what the faults can explain.
 * - A server that ends loses its current and its next segment (or the load in flight in the place of the next).
 * - An SDK that ends loses its current and its next segment, likewise.
 * - A call that failed may have had its ids carved; callers that live on recorded how many they had asked for.
 * - A store that stops or freezes leaves grants whose outcome nobody learns: one for each connection of a server that
 *   had a grant under way.
 */
function expectGaps(
  verdict: Verdict,
  floor: bigint,
  counts: { serverEnds: number; sdkEnds: number; unknownGrants: number },
): void {
  const holes = Number(floor) - verdict.distinct;
  const { serverEnds, sdkEnds, unknownGrants } = counts;
  const bound =
    2 * SERVER_SEGMENT * serverEnds +
    2 * SDK_SEGMENT * sdkEnds +
    verdict.idsInVain +
    SERVER_SEGMENT * unknownGrants;
  console.log(`floor ${floor}, holes ${holes}, bound ${bound}`, counts);
  expect(verdict.highest).toBeLessThanOrEqual(floor);
  expect(holes).toBeGreaterThanOrEqual(0);
  expect(holes).toBeLessThanOrEqual(bound);
}

function expectOnlyUnavailable(reports: readonly LoadReport[]): void {
  const unexpected = reports.filter(({ errors }) =>
    Object.keys(errors).some((name) => !EXPECTED.has(name)),
  );
  expect(unexpected).toEqual([]);
}
