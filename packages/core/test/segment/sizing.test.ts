import { nextSize } from "../../src/segment/sizing.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createRateMeter, observeRate, peakRate } from "../../src/segment/rate.ts";

const options = { min: 1_000, max: 100_000_000, holdForMs: 900_000 };

/** Ids per second at second s of an hour of ramps, bursts and idle spells. */
function rateAt(s: number): number {
  if (s < 600) return 10 + s * 2;
  if (s < 1_200) return s % 100 < 10 ? 20_000 : 500;
  if (s < 2_400) return 0;
  if (s < 3_000) return 5_000;
  return 200;
}

test("the size is between min and max whatever the rate", () => {
  fc.assert(
    fc.property(fc.nat(200_000_000), fc.double({ min: 0, max: 1e6, noNaN: true }), (size, rate) => {
      const next = nextSize(size, rate, options);
      expect(next).toBeGreaterThanOrEqual(options.min);
      expect(next).toBeLessThanOrEqual(options.max);
      expect(Number.isInteger(next)).toBe(true);
    }),
  );
});

test("it grows when a segment would last less than hold_for, shrinks when more than twice that, else stays", () => {
  const wanted = 10 * options.holdForMs;
  expect(nextSize(wanted - 1, 10, options)).toBe(wanted);
  expect(nextSize(wanted, 10, options)).toBe(wanted);
  expect(nextSize(wanted * 2, 10, options)).toBe(wanted * 2);
  expect(nextSize(wanted * 2 + 1, 10, options)).toBe(wanted);
});

test("over an hour of ramps, bursts and idle spells the size follows the peak rate and does not oscillate", () => {
  const meter = createRateMeter(0, 0, options.holdForMs);
  let total = 0;
  let size = options.min;
  const trueTotals = [0];
  const changes: number[] = [];
  for (let s = 1; s <= 3_600; s++) {
    total += rateAt(s);
    observeRate(meter, s * 1_000, total);
    trueTotals.push(total);
    const next = nextSize(size, peakRate(meter, s * 1_000, total), options);
    if (next !== size) changes.push(Math.sign(next - size));
    size = next;
    // The definition, computed from the whole history: the highest 10-second average of the last hold_for.
    let peak = 0;
    for (let from = Math.max(0, s - 900); from <= s - 10; from++) {
      peak = Math.max(peak, ((trueTotals[from + 10] ?? 0) - (trueTotals[from] ?? 0)) / 10_000);
    }
    const wanted = Math.max(options.min, peak * options.holdForMs);
    if (s > 10) {
      expect(size).toBeGreaterThanOrEqual(wanted * 0.99);
      // The oldest part of the last hold_for leaves in steps of a fifteenth of it.
      if (peak > 0 && s < 2_000) expect(size).toBeLessThanOrEqual(wanted * 2.01);
    }
  }
  const turns = changes.filter((sign, i) => i > 0 && sign !== changes[i - 1]).length;
  expect(turns).toBeLessThanOrEqual(4);
});
