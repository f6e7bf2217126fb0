// Core has no Date; here its calendar is compared with the one of JavaScript.
import fc from "fast-check";
import { expect, test } from "vitest";
import { civilOf, isoWeekOf, mondayOf, msOf } from "../../../src/server/format/calendar.ts";

const LAST_MS = 253_402_300_799_999;
const moments = fc.oneof(
  fc.integer({ min: -62_135_596_800_000, max: LAST_MS }),
  fc.constantFrom(0, LAST_MS, 951_782_399_999, 951_782_400_000, 4_107_542_400_000),
);

test("moments are those of the Gregorian calendar, and back", () => {
  fc.assert(
    fc.property(moments, (ms) => {
      const date = new Date(ms);
      const time = civilOf(ms);
      expect(time).toEqual({
        year: date.getUTCFullYear(),
        month: date.getUTCMonth() + 1,
        day: date.getUTCDate(),
        hour: date.getUTCHours(),
        minute: date.getUTCMinutes(),
        second: date.getUTCSeconds(),
        millisecond: date.getUTCMilliseconds(),
      });
      expect(msOf(time)).toBe(ms);
    }),
    { numRuns: 2_000 },
  );
});

test("ISO weeks begin on Mondays, and the first has the year's first Thursday", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2_932_896 }), (day) => {
      const { year, week } = isoWeekOf(day);
      const monday = mondayOf(year, week);
      expect(day - monday).toBeGreaterThanOrEqual(0);
      expect(day - monday).toBeLessThan(7);
      expect(new Date(monday * 86_400_000).getUTCDay()).toBe(1);
      expect(new Date((monday + 3) * 86_400_000).getUTCFullYear()).toBe(year);
    }),
    { numRuns: 1_000 },
  );
  expect(isoWeekOf(Date.UTC(2026, 10, 21) / 86_400_000)).toEqual({ year: 2026, week: 47 });
  expect(isoWeekOf(Date.UTC(2027, 0, 1) / 86_400_000)).toEqual({ year: 2026, week: 53 });
});
