import fc from "fast-check";
import { expect, test } from "vitest";
import { MAX_ID, MAX_SAFE_ID } from "../../../src/limits.ts";
import { horizonsOf } from "../../../src/server/capacity/horizons.ts";
import {
  MAX_STEPS,
  rateOf,
  sawUsed,
  type Usage,
} from "../../../src/server/capacity/usage-state.ts";
import { createWarningState, warningOf } from "../../../src/server/capacity/warning-state.ts";
import type { Tag } from "../../../src/server/tag/tag.ts";

const DAY_MS = 86_400_000;
const NOW_MS = Date.UTC(2026, 10, 22);

const TAG: Tag = {
  name: "orders",
  description: "",
  order: "UNORDERED",
  ceiling: MAX_ID,
  kind: { kind: "segment", start: 1n, min: 1_000, max: 1_000, holdForMs: 900_000, maxAgeMs: 1_000 },
  state: "ACTIVE",
  floor: 0n,
  periodStart: "",
  generation: 0n,
  version: 1n,
  epoch: 1n,
  revision: 1n,
  createdAtMs: 0,
  updatedAtMs: 0,
};

/** Looks at a tag that is used at a steady rate and handed out in segments, from `from` to `until`, every `everyMs`. */
function watched(
  drain: { idsPerSecond: number; segment: number; phase?: number },
  { everyMs, untilMs }: { everyMs: number; untilMs: number },
): Usage {
  let usage: Usage | undefined;
  for (let at = 0; at <= untilMs; at += everyMs) {
    const issued = (at / 1_000) * drain.idsPerSecond + (drain.phase ?? 0);
    const used = BigInt(Math.floor(issued / drain.segment) + 1) * BigInt(drain.segment);
    usage = sawUsed(usage, { at, used, epoch: 1n, period: "" });
  }
  if (usage === undefined) throw new Error("nothing was looked at");
  return usage;
}

test("a steady rate is told within 5 %, however large the segments are that it is seen by", () => {
  const drains = fc.record({
    idsPerSecond: fc.double({ min: 0.1, max: 1e6, noNaN: true }),
    jumps: fc.integer({ min: 25, max: 3_000 }),
    phase: fc.double({ min: 0, max: 1, noNaN: true }),
    looks: fc.integer({ min: 100, max: 2_000 }),
    hours: fc.double({ min: 0.05, max: 200, noNaN: true }),
  });
  fc.assert(
    fc.property(drains, ({ idsPerSecond, jumps, phase, looks, hours }) => {
      const untilMs = Math.ceil(hours * 3_600_000);
      const total = (untilMs / 1_000) * idsPerSecond;
      const segment = Math.max(1, Math.floor(total / jumps));
      fc.pre(total > 1_000);
      const everyMs = Math.ceil(untilMs / looks);
      const usage = watched(
        { idsPerSecond, segment, phase: phase * segment },
        { everyMs, untilMs },
      );
      const rate = rateOf(usage)?.idsPerSecond ?? 0;
      // The last week and the last day have fewer jumps, and a look finds a jump late by up to its distance.
      const seen = Math.min(jumps, (jumps * 24) / hours);
      const blur = 1.1 / (seen - 2) + 1.1 / (Math.min(looks, (looks * 24) / hours) - 2);
      fc.pre(seen > 4);
      expect(Math.abs(rate / idsPerSecond - 1)).toBeLessThan(Math.max(0.05, blur));
      expect(usage.steps.length).toBeLessThanOrEqual(MAX_STEPS);
    }),
    { numRuns: 300 },
  );
});

test("a tag drained at a known rate has its date within 5 %", () => {
  // 25 ids a second in segments of 20,000: one in 13 minutes, watched for a day, with 100 million left.
  const usage = watched(
    { idsPerSecond: 25, segment: 20_000 },
    { everyMs: 60_000, untilMs: DAY_MS },
  );
  const rate = rateOf(usage);
  const used = usage.steps.at(-1)?.used ?? 0n;
  const [end] = horizonsOf(
    { ...TAG, ceiling: used + 100_000_000n },
    { used, idsPerSecond: rate?.idsPerSecond, nowMs: NOW_MS },
  );
  expect(end).toMatchObject({ limit: "CEILING", left: 100_000_000n });
  const inMs = (end?.runsOutAtMs ?? 0) - NOW_MS;
  expect(Math.abs(inMs / 4_000_000_000 - 1)).toBeLessThan(0.05);
});

test("five segments are enough for a rate, since it is counted from the first to the last of them", () => {
  const drain = { idsPerSecond: 10, segment: 6_000 };
  const usage = watched(drain, { everyMs: 10_000, untilMs: 3_300_000 });
  expect(rateOf(usage)?.idsPerSecond).toBeCloseTo(10);
});

test("a week of looks tells how fast ids are used in its last day", () => {
  let usage: Usage | undefined;
  let used = 0n;
  for (let at = 0; at <= 7 * DAY_MS; at += 60_000) {
    used += at < 6 * DAY_MS ? 60n : 600n;
    usage = sawUsed(usage, { at, used, epoch: 1n, period: "" });
  }
  if (usage === undefined) throw new Error("nothing was looked at");
  expect(usage.steps).toHaveLength(MAX_STEPS);
  const { idsPerSecond, watchedMs } = rateOf(usage) ?? { idsPerSecond: 0, watchedMs: 0 };
  expect(idsPerSecond).toBeGreaterThan(8.5);
  expect(idsPerSecond).toBeLessThanOrEqual(10);
  expect(watchedMs / DAY_MS).toBeGreaterThanOrEqual(1);
  expect(watchedMs / DAY_MS).toBeLessThan(1.2);
});

test("nothing is told of a tag that nobody uses, and a rate falls while nobody does", () => {
  let usage = sawUsed(undefined, { at: 0, used: 100n, epoch: 1n, period: "" });
  usage = sawUsed(usage, { at: 60_000, used: 100n, epoch: 1n, period: "" });
  expect(rateOf(usage)).toBeUndefined();
  for (let at = 1; at <= 20; at++) {
    usage = sawUsed(usage, {
      at: at * 60_000,
      used: 100n + BigInt(at) * 60n,
      epoch: 1n,
      period: "",
    });
  }
  const busy = rateOf(usage)?.idsPerSecond ?? 0;
  expect(busy).toBeCloseTo(1);
  usage = sawUsed(usage, { at: 3_600_000, used: 1_300n, epoch: 1n, period: "" });
  expect(rateOf(usage)?.idsPerSecond).toBeLessThan(busy / 2.5);
});

test("what an operator raised, and what a new period began, is nobody's use", () => {
  let usage = sawUsed(undefined, { at: 0, used: 100n, epoch: 1n, period: "2026-11-22" });
  usage = sawUsed(usage, { at: 1_000, used: 200n, epoch: 1n, period: "2026-11-22" });
  expect(rateOf(usage)?.idsPerSecond).toBeCloseTo(100);
  usage = sawUsed(usage, { at: 2_000, used: 1_000_000n, epoch: 2n, period: "2026-11-22" });
  expect(rateOf(usage)).toBeUndefined();
  usage = sawUsed(usage, { at: 3_000, used: 1_000_010n, epoch: 2n, period: "2026-11-22" });
  expect(rateOf(usage)?.idsPerSecond).toBeCloseTo(10);
  usage = sawUsed(usage, { at: 4_000, used: 5n, epoch: 2n, period: "2026-11-23" });
  expect(rateOf(usage)).toBeUndefined();
});

test("each kind has the limits that its ids can reach", () => {
  const use = { used: 5n, idsPerSecond: 1, nowMs: NOW_MS };
  const names = (tag: Partial<Tag>) =>
    horizonsOf({ ...TAG, ...tag }, use).map(({ limit }) => limit);
  expect(names({})).toEqual(["INT32", "SAFE_INTEGER", "CEILING"]);
  expect(names({ ceiling: MAX_SAFE_ID })).toEqual(["INT32", "CEILING"]);
  expect(names({ ceiling: 1_000n })).toEqual(["CEILING"]);
  expect(names({ format: { template: "A{id:20}" } })).toEqual(["CEILING"]);
  const redis = { server: "a", step: 1_000 };
  const kind = { kind: "sequence", start: 1n, periods: undefined, redis } as const;
  expect(names({ kind, floor: 1_000n })).toEqual(["REDIS_MAX", "INT32", "SAFE_INTEGER", "CEILING"]);
  const [end] = horizonsOf(
    { ...TAG, kind: { kind: "redis_snowflake", shard: 1, timeOriginMs: 0, redisServer: "a" } },
    use,
  );
  expect(end).toEqual({
    limit: "TIME_BITS",
    lastId: undefined,
    left: undefined,
    runsOutAtMs: 2 ** 41,
  });
  expect(names({ kind: { kind: "object_id", variant: "CLASSIC" } })).toEqual(["TIME_BITS"]);
});

test("a limit that was passed is reached now, and without a count nothing is known", () => {
  const use = { used: 3_000_000_000n, idsPerSecond: undefined, nowMs: NOW_MS };
  const [int32, safe] = horizonsOf(TAG, use);
  expect(int32).toMatchObject({ left: 0n, runsOutAtMs: NOW_MS });
  expect(safe).toMatchObject({ left: MAX_SAFE_ID - 3_000_000_000n, runsOutAtMs: undefined });
  for (const { left, runsOutAtMs } of horizonsOf(TAG, { ...use, used: undefined })) {
    expect([left, runsOutAtMs]).toEqual([undefined, undefined]);
  }
});

test("a sequence that begins anew before it runs out has no date", () => {
  const periods = { unit: "DAY", timeZone: "UTC", keepForMs: DAY_MS } as const;
  const kind = { kind: "sequence", start: 1n, periods, redis: undefined } as const;
  const tag = { ...TAG, kind, ceiling: 1_000_000n };
  const dateAt = (idsPerSecond: number) =>
    horizonsOf(tag, { used: 0n, idsPerSecond, nowMs: NOW_MS })[0]?.runsOutAtMs;
  expect(dateAt(1)).toBeUndefined();
  expect(dateAt(100)).toBe(NOW_MS + 10_000_000);
});

test("a person is told at 30 and at 7 days, once each, and again when it had gone away", () => {
  const state = createWarningState();
  const tellAt = (days: number, watchedMs = 30 * DAY_MS): number | undefined => {
    const runsOutAtMs = NOW_MS + days * DAY_MS;
    const end = { limit: "CEILING", lastId: 10n, left: 5n, runsOutAtMs } as const;
    return warningOf(state, [end], { nowMs: NOW_MS, watchedMs })?.days;
  };
  expect([40, 31, 29, 28, 31, 29].map((days) => tellAt(days))).toEqual([
    undefined,
    undefined,
    30,
    undefined,
    undefined,
    undefined,
  ]);
  expect([6.9, 6, 8, 6].map((days) => tellAt(days))).toEqual([7, undefined, undefined, undefined]);
  expect([20, 6, 100, 29].map((days) => tellAt(days))).toEqual([undefined, 7, undefined, 30]);
});

test("nobody is told on the word of a short watch, and everybody when the ids are gone", () => {
  const soon = { limit: "CEILING", lastId: 10n, left: 5n, runsOutAtMs: NOW_MS + DAY_MS } as const;
  const told = (horizon: Parameters<typeof warningOf>[1][number], watchedMs: number) =>
    warningOf(createWarningState(), [horizon], { nowMs: NOW_MS, watchedMs })?.days;
  expect(told(soon, DAY_MS / 51)).toBeUndefined();
  expect(told(soon, DAY_MS / 49)).toBe(7);
  expect(told({ ...soon, left: 0n, runsOutAtMs: NOW_MS }, 0)).toBe(7);
  expect(told({ ...soon, limit: "TIME_BITS", left: undefined }, 0)).toBe(7);
  // Columns are outgrown without a refusal; the capacity says so to whoever asks.
  expect(told({ ...soon, limit: "INT32", left: 0n }, DAY_MS)).toBeUndefined();
});
