// Sequences that begin again at midnight, of servers that do not agree what time it is.
import { setTimeout as pause } from "node:timers/promises";
import { PeriodUnit } from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import { FakeWallClock, wallClockEnv } from "../../../src/faketime.ts";
import type { Fleet } from "../../../src/fleet/fleet.ts";
import { type Answer, faultsOf, readHistory } from "../../../src/fleet/history.ts";
import { until } from "../../../src/fleet/until.ts";
import { isLong, ownPostgres, someOf, startFleet } from "../../fleet-support.ts";

/** How far the servers' own clocks are off the store's. */
const SKEWS_MS = [-3_000, 0, 3_000];
/** The store is started so long before midnight: callers have to start too, and mint through every clock's midnight. */
const BEFORE_MS = isLong ? 25_000 : 10_000;
/** Until the midnight of every clock has passed. */
const AFTER_MS = isLong ? 15_000 : 4_000;
/** What the clocks of a busy machine may be read apart. */
const READING_MS = 50;

interface Midnight {
  readonly name: string;
  readonly timeZone: string;
  /** The midnight as an instant; in the order of time, since clocks of stores do not go back here. */
  readonly at: string;
  readonly ends: string;
  readonly begins: string;
}

const NEW_YORK = "America/New_York";
/**
 * All of them lie ahead: PostgreSQL looks at the time in signal handlers too, where the library may show the machine's. When
 * that is the earlier one, no statement's time-out ends too soon by it.
 */
const MIDNIGHTS: readonly Midnight[] = [
  {
    name: "begins the day of 25 hours",
    timeZone: NEW_YORK,
    at: "2031-11-02T04:00:00Z",
    ends: "2031-11-01",
    begins: "2031-11-02",
  },
  {
    name: "ends the day of 25 hours",
    timeZone: NEW_YORK,
    at: "2031-11-03T05:00:00Z",
    ends: "2031-11-02",
    begins: "2031-11-03",
  },
  {
    name: "begins a year",
    timeZone: "Asia/Shanghai",
    at: "2031-12-31T16:00:00Z",
    ends: "2031-12-31",
    begins: "2032-01-01",
  },
  {
    name: "begins the day of 23 hours",
    timeZone: NEW_YORK,
    at: "2032-03-14T05:00:00Z",
    ends: "2032-03-13",
    begins: "2032-03-14",
  },
  {
    name: "ends the day of 23 hours",
    timeZone: NEW_YORK,
    at: "2032-03-15T04:00:00Z",
    ends: "2032-03-14",
    begins: "2032-03-15",
  },
];

/** Midnight as this process sees it, and how far clocks are ahead of the machine's that show the midnight then. */
interface Plan {
  /** On the monotonic clock, in nanoseconds. */
  readonly passesAt: bigint;
  readonly offsetMs: number;
}

function planOf({ at }: Midnight): Plan {
  const [now, monotonic] = [Date.now(), process.hrtime.bigint()];
  const passesAt = monotonic + BigInt(BEFORE_MS) * 1_000_000n;
  return { passesAt, offsetMs: Date.parse(at) - BEFORE_MS - now };
}

test(
  "around midnight every (date, id) is answered once, each date begins at 1, and no session sees one go back",
  { timeout: 120_000 + 2 * MIDNIGHTS.length * (BEFORE_MS + AFTER_MS) },
  async () => {
    const serverClocks = SKEWS_MS.map(() => new FakeWallClock(0));
    onTestFinished(() => {
      for (const clock of serverClocks) clock[Symbol.dispose]();
    });
    const postgres = await ownPostgres();
    const { url } = await postgres.createDatabase();
    const envOf = serverClocks.map(({ env }) => env);
    const fleet = await startFleet({ servers: SKEWS_MS.length, storeUrl: url, envOf });
    for (const [at, midnight] of someOf(2, MIDNIGHTS).entries()) {
      const tag = `daily-${at}`;
      await postgres.stop("fast");
      const { passesAt, offsetMs } = planOf(midnight);
      await postgres.start({ env: wallClockEnv(offsetMs) });
      for (const [place, clock] of serverClocks.entries()) {
        clock.set(offsetMs + (SKEWS_MS[place] ?? 0));
      }
      const { timeZone } = midnight;
      const settings = { period: PeriodUnit.DAY, timeZone };
      await until("the tag is made", async () => {
        await fleet.first.api.createSequence(tag, settings);
        return true;
      });
      await until("all servers have their store again", async () => {
        const found = await Promise.all(fleet.servers.map(({ api }) => api.getTag(tag)));
        return found.length > 0;
      });
      await expectClocks(fleet, offsetMs);
      const history = await mint(fleet, tag, passesAt);
      expectTwoDates(history, midnight, passesAt);
    }
  },
);

/** What is measured is what is meant: each server's own clock is off by its skew. */
async function expectClocks(fleet: Fleet, offsetMs: number): Promise<void> {
  const asked = Date.now();
  const times = await Promise.all(
    fleet.servers.map(async ({ api }) => {
      const { time } = await api.send(api.nodes.getNodeTime.bind(api.nodes), {});
      return (time?.getTime() ?? 0) - offsetMs - asked;
    }),
  );
  for (const [place, time] of times.entries()) {
    const skew = SKEWS_MS[place] ?? 0;
    expect(time).toBeGreaterThanOrEqual(skew - READING_MS);
    expect(time).toBeLessThan(skew + 2_000);
  }
}

/** Lets two processes mint until well after midnight. */
async function mint(fleet: Fleet, tag: string, passesAt: bigint): Promise<readonly Answer[]> {
  const session = { kind: "id", perSecond: 30 } as const;
  const activities = [
    session,
    session,
    session,
    { kind: "id", perSecond: 60, parallel: 16 },
    { kind: "segments", perSecond: 10, count: 3, parallel: 2 },
  ] as const;
  const callers = await Promise.all(
    [0, 1].map(() => fleet.startCallers("history", { tag, activities, deadlineMs: 5_000 })),
  );
  const leftMs = Number((passesAt - process.hrtime.bigint()) / 1_000_000n);
  await pause(Math.max(0, leftMs) + AFTER_MS);
  const reports = await Promise.all(callers.map((child) => fleet.stopCallers(child)));
  // Nothing failed, so not one id may be missing.
  expect(reports.map(({ samples }) => samples)).toEqual([[], []]);
  return readHistory(callers.map((child) => fleet.recordsOf(child)));
}

function expectTwoDates(
  history: readonly Answer[],
  { name, timeZone, ends, begins }: Midnight,
  passesAt: bigint,
): void {
  expect(faultsOf(history)).toEqual({ repeats: [], inversions: [] });
  const counts: number[] = [];
  for (const period of [ends, begins]) {
    const answers = history.filter((answer) => answer.period === period);
    const sorted = answers.toSorted((a, b) => Number(a.first - b.first));
    // From 1, without a gap: nobody was killed.
    let next = 1n;
    for (const { first, last } of sorted) {
      expect(first).toBe(next);
      next = last + 1n;
    }
    expect(answers.length).toBeGreaterThan(30);
    counts.push(answers.length);
  }
  expect(history).toHaveLength(counts.reduce((sum, count) => sum + count, 0));
  // The store's clock decides, and none of the servers'.
  const margin = BigInt(READING_MS) * 1_000_000n;
  const early = history.filter((a) => a.period === begins && a.answered < passesAt - margin);
  const late = history.filter((a) => a.period === ends && a.asked > passesAt + margin);
  expect({ early, late }).toEqual({ early: [], late: [] });
  console.log(`${timeZone}, midnight that ${name}: ${counts.join(" and ")} answers`);
}
