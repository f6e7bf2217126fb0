import type { PeriodUnit } from "@idmint/core/kinds";
import { FORGOTTEN, type OtherPeriod, type Tag } from "@idmint/core/server";
import { sequenceOf } from "@idmint/testkit/store-suite";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  acceptedPeriods,
  CLOCK_BOUND_MS,
  CLOCK_MARGIN_MS,
  doubtOf,
  forgottenPeriod,
  isFirstDay,
  MAX_PERIODS_AHEAD,
  otherPeriodsFrom,
  otherPeriodsText,
  periodAt,
  periodEnd,
  placeOfMade,
  type Turn,
  turnOf,
  withPeriod,
} from "../../../src/store/shared/period.ts";

const DAY_MS = 86_400_000;
const SETTINGS = sequenceOf("t");
const SEQUENCE = { kind: "sequence", start: 1n, periods: undefined, redis: undefined } as const;

/** The row of a deleted tag of which an accept knows no more. */
function lostRow(otherPeriods: readonly OtherPeriod[], updatedAtMs: number): Tag {
  const counts = { floor: 9n, generation: 0n, version: 1n, epoch: 2n, revision: 3n };
  const its = { state: "DELETED", periodStart: "", createdAtMs: 0 } as const;
  return { ...SETTINGS, ...counts, ...its, otherPeriods, updatedAtMs };
}

function dayAt(days: number): string {
  return new Date(days * DAY_MS).toISOString().slice(0, 10);
}

/** Periods as they are told: unit, zone, an instant, its period's first day, and the instant at which it ends. */
const told: readonly [PeriodUnit, string, string, string, string][] = [
  ["DAY", "UTC", "2026-11-21T00:00:00.000Z", "2026-11-21", "2026-11-22T00:00:00.000Z"],
  ["DAY", "UTC", "2026-11-20T23:59:59.999Z", "2026-11-20", "2026-11-21T00:00:00.000Z"],
  ["DAY", "Asia/Shanghai", "2026-11-20T16:00:00.000Z", "2026-11-21", "2026-11-21T16:00:00.000Z"],
  ["DAY", "Asia/Shanghai", "2026-11-20T15:59:59.999Z", "2026-11-20", "2026-11-20T16:00:00.000Z"],
  // 23 and 25 hours.
  ["DAY", "America/New_York", "2026-03-08T06:59:59.999Z", "2026-03-08", "2026-03-09T04:00:00.000Z"],
  ["DAY", "America/New_York", "2026-11-01T04:00:00.000Z", "2026-11-01", "2026-11-02T05:00:00.000Z"],
  // Midnight is left out: the day begins at 1.
  ["DAY", "America/Havana", "2026-03-08T04:59:59.999Z", "2026-03-07", "2026-03-08T05:00:00.000Z"],
  ["DAY", "America/Havana", "2026-03-08T05:00:00.000Z", "2026-03-08", "2026-03-09T04:00:00.000Z"],
  ["DAY", "Africa/Cairo", "2026-04-23T21:59:59.999Z", "2026-04-23", "2026-04-23T22:00:00.000Z"],
  // Midnight comes twice: the day begins at the first.
  ["DAY", "America/Havana", "2026-11-01T03:59:59.999Z", "2026-10-31", "2026-11-01T04:00:00.000Z"],
  ["DAY", "America/Havana", "2026-11-01T05:30:00.000Z", "2026-11-01", "2026-11-02T05:00:00.000Z"],
  // A day that never was.
  ["DAY", "Pacific/Apia", "2011-12-30T09:59:59.999Z", "2011-12-29", "2011-12-30T10:00:00.000Z"],
  ["DAY", "Pacific/Apia", "2011-12-30T10:00:00.000Z", "2011-12-31", "2011-12-31T10:00:00.000Z"],
  ["WEEK", "Europe/London", "2026-11-22T23:59:59.999Z", "2026-11-16", "2026-11-23T00:00:00.000Z"],
  ["WEEK", "Europe/London", "2026-10-25T12:00:00.000Z", "2026-10-19", "2026-10-26T00:00:00.000Z"],
  ["WEEK", "UTC", "2027-01-01T12:00:00.000Z", "2026-12-28", "2027-01-04T00:00:00.000Z"],
  ["MONTH", "Asia/Kolkata", "2026-01-31T18:29:59.999Z", "2026-01-01", "2026-01-31T18:30:00.000Z"],
  ["MONTH", "UTC", "2028-02-29T12:00:00.000Z", "2028-02-01", "2028-03-01T00:00:00.000Z"],
  [
    "YEAR",
    "Pacific/Auckland",
    "2026-12-31T11:00:00.000Z",
    "2027-01-01",
    "2027-12-31T11:00:00.000Z",
  ],
];

test.each(told)("a %s in %s at %s is that of %s", (unit, timeZone, at, start, end) => {
  const cut = { unit, timeZone };
  expect(periodAt(cut, Date.parse(at))).toBe(start);
  expect(new Date(periodEnd(cut, start)).toISOString()).toBe(end);
});

test("a first day of another unit ends with the period it lies in", () => {
  expect(periodEnd({ unit: "YEAR", timeZone: "UTC" }, "2026-11-21")).toBe(Date.UTC(2027, 0, 1));
});

function at(start: string, today: string): Turn {
  return turnOf({ start, floor: 7n, others: [] }, today);
}

test("a period only moves forward", () => {
  expect(at("2026-11-21", "2026-11-21")).toEqual({
    start: "2026-11-21",
    floor: 7n,
    others: [],
    hasEnded: false,
  });
  expect(at("2026-11-21", "2026-11-22")).toEqual({
    start: "2026-11-22",
    floor: 0n,
    others: [{ start: "2026-11-21", lastId: 7n }],
    hasEnded: true,
  });
  expect(at("2026-11-21", "2026-11-20")).toEqual({
    start: "2026-11-21",
    floor: 7n,
    others: [],
    hasEnded: false,
  });
  expect(at("", "2026-11-20")).toMatchObject({ start: "2026-11-20", floor: 7n, hasEnded: false });
});

const left = (start: string, lastId = 7n): OtherPeriod => ({ start, lastId });
const days = (first: number, last: number): readonly OtherPeriod[] =>
  Array.from({ length: last - first + 1 }, (_, i) => left(`2026-11-${first + i}`));

test("a row keeps the ten latest of the periods that it left, each once, the latest first", () => {
  // In an order that is neither of the two.
  const order = [...days(16, 22), ...days(10, 15).toReversed()];
  const kept = order.reduce<readonly OtherPeriod[]>(withPeriod, []);
  expect(kept).toEqual(days(13, 22).toReversed());
  const again = withPeriod(kept, left("2026-11-20", 9n));
  expect(again).toHaveLength(10);
  expect(again[2]).toEqual(left("2026-11-20", 9n));
});

test("a day that is begun again goes on above its own ids, and others from nothing", () => {
  const others = [left("2026-11-23", 40n), left("2026-11-22", 30n)];
  const row = { start: "2026-11-21", floor: 5n, others };
  expect(turnOf(row, "2026-11-22").floor).toBe(30n);
  expect(turnOf(row, "2026-11-24").floor).toBe(0n);
});

test("of the periods of a row, the present one and those before it are forgotten with an accept", () => {
  const others = [left("2026-11-23", 40n), left("2026-11-22", 30n), left("2026-11-21", 20n)];
  const accepted = acceptedPeriods({ start: "2026-11-22", floor: 30n, others }, 10n, 50n);
  expect(accepted).toEqual([left("2026-11-23", 50n), left("2026-11-21", FORGOTTEN)]);
  const [low] = acceptedPeriods({ start: "2026-11-22", floor: 30n, others }, 9n, 50n);
  const [high] = acceptedPeriods({ start: "2026-11-22", floor: 30n, others }, 11n, 50n);
  expect([low?.lastId, high?.lastId]).toEqual([49n, 50n]);
});

test("the latest forgotten period is the one that its day lies in", () => {
  const others = [left("2026-11-22"), left("2026-11-18", FORGOTTEN)];
  expect(forgottenPeriod("WEEK", others)).toBe("2026-11-16");
  expect(forgottenPeriod("WEEK", [left("2026-11-22")])).toBeUndefined();
});

test("a tag made over a row that knows a latest period begins in none before it, nor before the one of its accept", () => {
  const day = fc.integer({ min: 20_000, max: 20_800 });
  const unit = fc.constantFrom<PeriodUnit>("DAY", "WEEK", "MONTH", "YEAR");
  const zone = fc.constantFrom("UTC", "Asia/Shanghai", "America/Havana");
  fc.assert(
    fc.property(unit, zone, day, day, day, (its, timeZone, latest, accepted, known) => {
      const cut = { unit: its, timeZone };
      const updatedAtMs = accepted * DAY_MS - CLOCK_MARGIN_MS;
      const others = [left(dayAt(latest), FORGOTTEN), left(dayAt(known), 5n)];
      const { periodStart, otherPeriods = [] } = placeOfMade(lostRow(others, updatedAtMs), {
        ...SEQUENCE,
        periods: { ...cut, keepForMs: 1 },
      });
      const claimed = forgottenPeriod(its, others) ?? "";
      const begun = periodAt(cut, updatedAtMs + CLOCK_MARGIN_MS);
      expect(periodStart).toBe(claimed > begun ? claimed : begun);
      for (const { start, lastId } of otherPeriods)
        expect(lastId === FORGOTTEN).toBe(start < periodStart);
      expect(otherPeriods.some(({ lastId }) => lastId === FORGOTTEN)).toBe(true);
    }),
  );
});

test("a tag made over any other row is in the period of that row", () => {
  const others = [left("2026-11-22"), left("2026-11-18", FORGOTTEN)];
  const row = { ...lostRow(others, 0), periodStart: "2026-11-19" };
  const daily = { ...SEQUENCE, periods: { unit: "DAY", timeZone: "UTC", keepForMs: 1 } } as const;
  const { periodStart } = row;
  expect(placeOfMade(row, daily)).toEqual({ periodStart, otherPeriods: others });
  const lost = lostRow([left("2026-11-18", FORGOTTEN)], 0);
  expect(placeOfMade(lost, SEQUENCE)).toEqual({ periodStart: "", otherPeriods: lost.otherPeriods });
});

test("other periods come back from a column as they went, the latest first", () => {
  expect(otherPeriodsText([])).toBeNull();
  expect(otherPeriodsFrom(null)).toEqual([]);
  const two = [left("2026-11-22", 2n ** 62n), left("2026-11-20", FORGOTTEN)];
  expect(otherPeriodsFrom(otherPeriodsText(two))).toEqual(two);
  expect(otherPeriodsFrom(otherPeriodsText(two.toReversed()))).toEqual(two);
  expect(otherPeriodsText([left("2026-11-22")])).toBe('{"2026-11-22":"7"}');
});

test("a period is in doubt while it is more than five minutes ahead", () => {
  const cut = { unit: "DAY", timeZone: "UTC" } as const;
  const midnight = Date.parse("2026-11-22T00:00:00.000Z");
  const fiveMinutes = 300_000;
  expect(doubtOf(cut, "2026-11-22", midnight - fiveMinutes)).toBeUndefined();
  expect(doubtOf(cut, "2026-11-22", midnight - fiveMinutes - 1)).toBe("AHEAD");
  expect(doubtOf(cut, "2026-11-21", midnight)).toBeUndefined();
});

test.each([
  ["DAY", "2026-11-21", true],
  ["WEEK", "2026-11-16", true],
  ["WEEK", "2026-11-17", false],
  ["MONTH", "2026-11-01", true],
  ["MONTH", "2026-11-21", false],
  ["YEAR", "2026-01-01", true],
  ["YEAR", "2026-02-01", false],
  ["DAY", "2026-02-30", false],
  ["DAY", "2026-11-21T00:00", false],
  ["DAY", "20261121", false],
  // Its year has more than four digits, and texts would not have the order of days.
  ["DAY", "+012026-11-21", false],
] as const)("whether a %s begins on %s: %s", (unit, text, is) => {
  expect(isFirstDay(unit, text)).toBe(is);
});

test("what the pages for users say of periods and clocks is so", () => {
  expect(CLOCK_BOUND_MS).toBe(10_000);
  expect(MAX_PERIODS_AHEAD).toBe(5);
});
