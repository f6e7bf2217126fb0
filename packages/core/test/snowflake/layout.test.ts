import {
  decode,
  encode,
  endOf,
  idsOfSpan,
  idsPerSecond,
  maxIdOf,
  SNOWFLAKE_PRESETS,
  type SnowflakeLayout,
  tickAt,
  timeOf,
} from "@idmint/core";
import {
  bitsOf,
  composeHalves,
  layoutViolations,
  type SnowflakeParts,
} from "../../src/snowflake/layout.ts";
import fc from "fast-check";
import { expect, test } from "vitest";

const ORIGIN_MS = Date.UTC(2026, 0, 1);
const NOW_MS = Date.UTC(2026, 10, 21);
const life = { nowMs: NOW_MS, allowShortLife: false };

const layouts: fc.Arbitrary<SnowflakeLayout> = fc
  .record({
    timeUnitMs: fc.integer({ min: 1, max: 1_000 }),
    timeOriginMs: fc.integer({ min: 0, max: NOW_MS }),
    timeBits: fc.integer({ min: 1, max: 47 }),
    extensionBits: fc.nat(8),
    dataCenterBits: fc.nat(16),
    workerBits: fc.nat(22),
    sequenceBits: fc.integer({ min: 1, max: 30 }),
  })
  .filter((layout) => bitsOf(layout) <= 63 && endOf(layout) <= Date.UTC(10_000, 0, 1));

/** Values at the edges of a width, and anything between. */
function valueOf(bits: number): fc.Arbitrary<number> {
  const max = 2 ** bits - 1;
  return fc.oneof(fc.constantFrom(0, max, Math.floor(max / 2), Math.ceil(max / 2)), fc.nat(max));
}

const layoutWithParts = layouts.chain((layout) =>
  fc.tuple(
    fc.constant(layout),
    fc.record<SnowflakeParts>({
      tick: valueOf(layout.timeBits),
      extension: valueOf(layout.extensionBits),
      dataCenter: valueOf(layout.dataCenterBits),
      worker: valueOf(layout.workerBits),
      sequence: valueOf(layout.sequenceBits),
    }),
  ),
);

test("an id is its fields side by side, and gives them back", () => {
  fc.assert(
    fc.property(layoutWithParts, ([layout, parts]) => {
      const fields: [number, number][] = [
        [parts.tick, layout.timeBits],
        [parts.extension, layout.extensionBits],
        [parts.dataCenter, layout.dataCenterBits],
        [parts.worker, layout.workerBits],
        [parts.sequence, layout.sequenceBits],
      ];
      const expected = fields.reduce(
        (id, [value, bits]) => (id << BigInt(bits)) | BigInt(value),
        0n,
      );
      expect(encode(layout, parts)).toBe(expected);
      expect(decode(layout, expected)).toEqual(parts);
      expect(expected <= maxIdOf(layout)).toBe(true);
      const { hi, lo } = composeHalves(layout, parts);
      expect(hi < 2 ** 31 && lo < 2 ** 32).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});

test("what does not fit is refused, never cut", () => {
  const layout = SNOWFLAKE_PRESETS["41-5-5-12"];
  const parts = { tick: 0, extension: 0, dataCenter: 0, worker: 0, sequence: 0 };
  expect(encode(layout, parts)).toBe(0n);
  for (const bad of [
    { tick: 2 ** 41 },
    { tick: -1 },
    { extension: 1 },
    { dataCenter: 32 },
    { worker: 32 },
    { sequence: 4_096 },
    { sequence: 0.5 },
  ]) {
    expect(() => encode(layout, { ...parts, ...bad })).toThrow("VALUE_OUT_OF_RANGE");
  }
  expect(() => decode(layout, -1n)).toThrow("INVALID_ID");
  expect(() => decode(SNOWFLAKE_PRESETS.js53, 2n ** 53n)).toThrow("INVALID_ID");
  expect(decode(SNOWFLAKE_PRESETS.js53, 2n ** 53n - 1n).tick).toBe(2 ** 41 - 1);
});

test("the ids of a time span are those of its ticks, and no others", () => {
  fc.assert(
    fc.property(layoutWithParts, fc.nat(5_000), ([layout, parts], lengthMs) => {
      const fromMs = timeOf(layout, parts.tick);
      const toMs = Math.min(fromMs + lengthMs, endOf(layout) - 1);
      const { min, max } = idsOfSpan(layout, fromMs, toMs);
      const id = encode(layout, parts);
      expect(min <= id && id <= max).toBe(true);
      expect(decode(layout, min).tick).toBe(parts.tick);
      expect(decode(layout, max).tick).toBe(tickAt(layout, toMs));
      if (parts.tick > 0) {
        expect(encode(layout, { ...parts, tick: parts.tick - 1 }) < min).toBe(true);
      }
      if (decode(layout, max).tick < 2 ** layout.timeBits - 1) {
        expect(encode(layout, { ...parts, tick: tickAt(layout, toMs) + 1 }) > max).toBe(true);
      }
    }),
  );
  const layout = SNOWFLAKE_PRESETS["41-10-12"];
  expect(() => idsOfSpan(layout, ORIGIN_MS - 1, ORIGIN_MS)).toThrow(/from must be/);
  expect(() => idsOfSpan(layout, ORIGIN_MS, endOf(layout))).toThrow(/to must be/);
  expect(() => idsOfSpan(layout, ORIGIN_MS + 1, ORIGIN_MS)).toThrow(/to must be/);
});

test.each([
  ["41-10-12", 63, "2095-09-07", 4_096_000],
  ["41-5-5-12", 63, "2095-09-07", 4_096_000],
  ["sonyflake", 63, "2200-03-19", 25_600],
  ["js53", 53, "2095-09-07", 128_000],
] as const)(
  "preset %s has %i bits, ends on %s and makes %i ids a second",
  (name, bits, end, rate) => {
    const layout = SNOWFLAKE_PRESETS[name];
    expect(layout.timeOriginMs).toBe(ORIGIN_MS);
    expect(bitsOf(layout)).toBe(bits);
    expect(new Date(endOf(layout)).toISOString().slice(0, 10)).toBe(end);
    expect(idsPerSecond(layout)).toBe(rate);
    expect(layoutViolations("tag.snowflake.layout", layout, life)).toEqual([]);
  },
);

const GOOD = SNOWFLAKE_PRESETS["41-10-12"];
test.each<[Partial<SnowflakeLayout>, string, RegExp]>([
  [{ timeUnitMs: 0 }, ".time_unit", /1 to 1000 whole milliseconds, got 0/],
  [{ timeUnitMs: 1.5 }, ".time_unit", /got 1.5/],
  [{ timeUnitMs: Number.NaN }, ".time_unit", /got NaN/],
  [{ timeBits: 48 }, ".time_bits", /1 to 47, got 48/],
  [{ timeOriginMs: NOW_MS + 1 }, ".time_origin", /must be 0 to/],
  [{ dataCenterBits: 17 }, ".data_center_bits", /0 to 16/],
  [{ workerBits: 23 }, ".worker_bits", /0 to 22/],
  [{ sequenceBits: 0 }, ".sequence_bits", /1 to 30/],
  [{ extensionBits: 9 }, ".extension_bits", /0 to 8/],
  [{ extensionBits: 1 }, "", /has 64 bits, but a positive id has at most 63/],
  [{ timeUnitMs: 1_000, timeBits: 40 }, ".time_bits", /year 9999/],
  [{ timeBits: 34 }, ".time_bits", /already run out/],
  [{ timeBits: 35 }, ".time_bits", /run out in 73 days; set allow_short_life/],
])("a layout with %o is refused for %s", (change, field, text) => {
  const found = layoutViolations("l", { ...GOOD, ...change }, life);
  expect(found).toHaveLength(1);
  expect(found[0]?.field).toBe(`l${field}`);
  expect(found[0]?.description).toMatch(text);
});

test("a life below 365 days must be meant, one that is over cannot be", () => {
  const layout = { ...GOOD, timeBits: 35 };
  expect(layoutViolations("l", layout, { ...life, allowShortLife: true })).toEqual([]);
  const end = endOf(layout);
  const meant = { nowMs: end, allowShortLife: true };
  expect(layoutViolations("l", layout, meant)).toHaveLength(1);
  const year = 365 * 86_400_000;
  expect(layoutViolations("l", layout, { ...life, nowMs: end - year })).toEqual([]);
  expect(layoutViolations("l", layout, { ...life, nowMs: end - year + 1 })).toHaveLength(1);
});

test("every bad field is named at once", () => {
  const found = layoutViolations("l", { ...GOOD, workerBits: -1, sequenceBits: 31 }, life);
  expect(found.map((one) => one.field)).toEqual(["l.worker_bits", "l.sequence_bits"]);
});
