import fc from "fast-check";
import { expect, test } from "vitest";
import { durationText } from "../../src/kinds/settling.ts";
import { durationFrom } from "../../src/kinds/typed.ts";

test("a duration is read as it is written", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 3_650 * 86_400_000 }), (ms) => {
      const text = durationText(ms);
      // Nine digits are enough for every duration of a kind: those of many milliseconds are shown in larger units.
      fc.pre(/^\d{1,9}[a-z]+$/u.test(text));
      expect(durationFrom(text)).toBe(ms);
    }),
  );
});

test.each(["", "15", "m", "1.5h", "-1s", " 1s", "1s ", "1S", "1w", "1000000000ms"])(
  "%j is no duration",
  (text) => {
    expect(durationFrom(text)).toBeUndefined();
  },
);
