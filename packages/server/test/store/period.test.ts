import type { PeriodUnit } from "@idmint/core/kinds";
import { expect, test } from "vitest";
import { periodAt, periodEnd, type Turn, turnOf } from "../../src/store/shared/period.ts";

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
