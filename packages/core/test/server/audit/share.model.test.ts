import { auditShare } from "@idmint/core/server";
import fc from "fast-check";
import { expect, test } from "vitest";

const counts = fc.array(fc.integer({ min: 1, max: 1_000 }), { maxLength: 20 });
const keeps = fc.integer({ min: 0, max: 2_000 });
const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

test("what is kept is never more than may be, and nobody has less than an equal part because of others", () => {
  fc.assert(
    fc.property(counts, keeps, (all, keep) => {
      const share = auditShare(all, keep);
      if (share === undefined) {
        expect(all.length).toBeGreaterThan(keep);
        return;
      }
      expect(all.length).toBeLessThanOrEqual(keep);
      const kept = all.map((count) => Math.min(count, share));
      expect(sum(kept)).toBeLessThanOrEqual(keep);
      for (const [at, count] of all.entries()) {
        expect(kept[at]).toBeGreaterThanOrEqual(Math.min(count, Math.floor(keep / all.length)));
      }
      // Nothing is removed for nothing: one row more for each who lost some would be too many.
      const losers = all.filter((count) => count > share).length;
      if (losers > 0) expect(sum(kept) + losers).toBeGreaterThan(keep);
    }),
  );
});

test("who has just an equal part leaves what cannot be divided to the others", () => {
  expect(auditShare([2, 5], 5)).toBe(3);
  expect(auditShare([2, 3], 5)).toBe(Infinity);
  expect(auditShare([], 5)).toBe(Infinity);
});
