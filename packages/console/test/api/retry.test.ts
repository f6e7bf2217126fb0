import fc from "fast-check";
import { expect, test } from "vitest";
import { waitBeforeRetry } from "../../src/api/retry.ts";

const failed = fc.record({
  isTransient: fc.boolean(),
  retryAfterMs: fc.option(fc.integer({ min: 0, max: 60_000 }), { nil: undefined }),
});

test("a read is made again a few times at most, after a wait that leaves time for it", () => {
  fc.assert(
    fc.property(
      failed,
      fc.integer({ min: 1, max: 10 }),
      fc.integer({ min: -1_000, max: 60_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (error, attempt, leftMs, random) => {
        const wait = waitBeforeRetry(error, attempt, leftMs, random);
        if (wait === undefined) return;
        expect(error.isTransient).toBe(true);
        expect(attempt).toBeLessThan(3);
        expect(wait).toBeLessThan(leftMs);
        expect(wait).toBeGreaterThanOrEqual(error.retryAfterMs ?? 0);
        expect(wait).toBeGreaterThanOrEqual(100);
      },
    ),
  );
});

test("pages that failed together do not come back together", () => {
  const error = { isTransient: true, retryAfterMs: 1_000 };
  const waits = [0, 0.5, 0.99].map((random) => waitBeforeRetry(error, 1, 10_000, random));
  expect(new Set(waits).size).toBe(3);
});
