import { expect, test } from "vitest";
import { durationOf, millisecondsOf } from "../src/duration.ts";

test.each([
  [0, { seconds: 0n, nanos: 0 }],
  [999, { seconds: 0n, nanos: 999_000_000 }],
  [60_000, { seconds: 60n, nanos: 0 }],
  [1.1, { seconds: 0n, nanos: 1_100_000 }],
])("%d ms are a duration, and the same ms again", (ms, duration) => {
  expect(durationOf(ms)).toEqual(duration);
  expect(millisecondsOf(duration)).toBe(ms);
});

test("no duration stays none", () => {
  expect(durationOf(undefined)).toBeUndefined();
  expect(millisecondsOf(undefined)).toBeUndefined();
});
