import fc from "fast-check";
import { expect, test } from "vitest";
import { pollWaitMs } from "../../src/state/polling-state.ts";

test("asks again at its pace, backs off from a silent server, and always asks again soon", () => {
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  const everyMs = fc.integer({ min: 500, max: 60_000 });
  fc.assert(
    fc.property(everyMs, fc.nat({ max: 5_000 }), random, (every, failures, at) => {
      const wait = pollWaitMs({ everyMs: every, failures, random: at });
      if (failures === 0) expect(wait).toBe(every);
      expect(wait).toBeGreaterThanOrEqual(every / 2);
      expect(wait).toBeLessThanOrEqual(Math.max(every, 15_000));
    }),
  );
});
