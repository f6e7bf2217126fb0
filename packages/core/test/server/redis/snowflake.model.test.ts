import fc from "fast-check";
import { expect, test } from "vitest";
import {
  composeId,
  COUNTERS_PER_MS,
  lifeEndMs,
  MAX_AHEAD_MS,
  MAX_SNOWFLAKE_COUNT,
  positionOf,
  type RedisSnowflakeLayout,
  runsOf,
} from "../../../src/kinds/redis-snowflake-layout.ts";
import { MAX_ID } from "../../../src/limits.ts";
import { decode } from "../../../src/snowflake/layout.ts";
import {
  firstAbove,
  floorToReserve,
  isEnding,
  limitOf,
} from "../../../src/server/redis/snowflake-reservation.ts";

const layouts = fc.record({
  shard: fc.integer({ min: 0, max: 4_095 }),
  timeOriginMs: fc.integer({ min: 0, max: Date.UTC(2100, 0) }),
});
const times = fc.oneof(
  fc.integer({ min: 0, max: 2 ** 41 - 1 }),
  fc.constantFrom(0, 1, 2 ** 41 - 2, 2 ** 41 - 1),
);
const counters = fc.oneof(fc.integer({ min: 0, max: 1_023 }), fc.constantFrom(0, 1_023));

const BITS = {
  timeUnitMs: 1,
  timeBits: 41,
  extensionBits: 0,
  dataCenterBits: 0,
  workerBits: 12,
  sequenceBits: 10,
};

test("an id tells its parts again, fits 63 bits, and is in the order of its position", () => {
  fc.assert(
    fc.property(layouts, times, counters, times, counters, (layout, time, counter, t2, c2) => {
      const atMs = layout.timeOriginMs + time;
      const id = composeId(layout, atMs, counter);
      expect(id).toBeLessThanOrEqual(MAX_ID);
      const parts = { tick: time, worker: layout.shard, sequence: counter };
      expect(decode({ ...BITS, timeOriginMs: layout.timeOriginMs }, id)).toMatchObject(parts);
      const at2 = layout.timeOriginMs + t2;
      const isBefore = positionOf(atMs, counter) < positionOf(at2, c2);
      expect(id < composeId(layout, at2, c2)).toBe(isBefore);
      expect(Number.isSafeInteger(positionOf(atMs, counter))).toBe(true);
    }),
  );
});

test("an id is the bits it is said to be", () => {
  const layout = { shard: 60, timeOriginMs: 0 };
  const id = composeId(layout, 1_529_810_591_000, 20);
  expect(id).toBe((1_529_810_591_000n << 22n) | (60n << 10n) | 20n);
  expect(composeId({ shard: 4_095, timeOriginMs: 5 }, lifeEndMs(5), 1_023)).toBe(MAX_ID);
});

test("what is out of range is refused", () => {
  const layout = { shard: 1, timeOriginMs: 1_000 };
  expect(() => composeId(layout, 999, 0)).toThrow(RangeError);
  expect(() => composeId(layout, lifeEndMs(1_000) + 1, 0)).toThrow(RangeError);
  expect(() => composeId(layout, 1_000, 1_024)).toThrow(RangeError);
  expect(() => composeId({ ...layout, shard: 4_096 }, 1_000, 0)).toThrow(RangeError);
});

test("runs cover exactly the positions, and the largest call stays within the time it may be ahead", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 2 ** 52 }),
      fc.integer({ min: 1, max: MAX_SNOWFLAKE_COUNT }),
      (first, count) => {
        const runs = runsOf(first, count);
        let next = first;
        for (const run of runs) {
          expect(positionOf(run.atMs, run.counter)).toBe(next);
          expect(run.counter + run.count).toBeLessThanOrEqual(COUNTERS_PER_MS);
          next += run.count;
        }
        expect(next).toBe(first + count);
        expect((runs.at(-1)?.atMs ?? 0) - (runs[0]?.atMs ?? 0)).toBeLessThanOrEqual(MAX_AHEAD_MS);
        expect(runs.length).toBeLessThanOrEqual(64);
      },
    ),
  );
});

/** All ids of positions from `first` to the end of `limitMs`, by their bounds; undefined: none. */
function boundsOf(layout: RedisSnowflakeLayout, first: number, limitMs: number) {
  const counter = first % COUNTERS_PER_MS;
  const firstMs = (first - counter) / COUNTERS_PER_MS;
  if (firstMs > limitMs) return undefined;
  return { low: composeId(layout, firstMs, counter), high: composeId(layout, limitMs, 1_023) };
}

test("whatever the floors, the positions of a raise are exactly those whose ids are in its range", () => {
  const ids = fc.bigInt({ min: 0n, max: MAX_ID - (1n << 23n) });
  const near = fc.record({ at: ids, by: fc.bigInt({ min: 0n, max: 1n << 23n }) });
  fc.assert(
    fc.property(layouts, near, (layout, { at: before, by }) => {
      const floor = before + by;
      const bounds = boundsOf(layout, firstAbove(layout, before), limitOf(layout, floor));
      if (bounds === undefined) return;
      expect(bounds.low).toBeGreaterThan(before);
      expect(bounds.high).toBeLessThanOrEqual(floor);
      // No millisecond less than there could be.
      const limit = limitOf(layout, floor);
      if (limit < lifeEndMs(layout.timeOriginMs)) {
        expect(composeId(layout, limit + 1, 1_023)).toBeGreaterThan(floor);
      }
    }),
    { numRuns: 500 },
  );
});

test("a reservation ends 3 s after the clock, is found again in the floor, and the next start lies above it", () => {
  fc.assert(
    fc.property(layouts, times, (layout, time) => {
      const nowMs = layout.timeOriginMs + time;
      const floor = floorToReserve(layout, nowMs);
      if (floor === undefined) throw new Error("its time is not over");
      const untilMs = Math.min(nowMs + 3_000, lifeEndMs(layout.timeOriginMs));
      expect(limitOf(layout, floor)).toBe(untilMs);
      expect(isEnding(untilMs, nowMs)).toBe(untilMs - nowMs < 2_000);
      if (untilMs < lifeEndMs(layout.timeOriginMs)) {
        expect(firstAbove(layout, floor)).toBe(positionOf(untilMs + 1, 0));
      }
    }),
  );
});

test("a reservation is refused when the bits of the time are used up", () => {
  const layout = { shard: 0, timeOriginMs: 0 };
  expect(floorToReserve(layout, lifeEndMs(0) + 1)).toBeUndefined();
  expect(floorToReserve(layout, lifeEndMs(0))).toBe(composeId(layout, lifeEndMs(0), 1_023));
});
