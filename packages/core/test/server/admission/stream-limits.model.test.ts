import fc from "fast-check";
import {
  type CallerStreams,
  createStreamLimitsState,
  lookAtStreams,
  NARROW_STREAMS,
} from "@idmint/core/server";
import { expect, test } from "vitest";

const OPTIONS = { heldMost: 128, least: 4, calmMs: 10_000 };

function callers(its: Readonly<Record<string, CallerStreams>>): Map<string, CallerStreams> {
  return new Map(Object.entries(its));
}

test("whoever comes and goes: limits are of callers that are there, few enough, and end", () => {
  const streams = fc.record({
    connections: fc.integer({ min: 1, max: 100 }),
    inFlight: fc.nat(4_096),
    held: fc.oneof(fc.constant(0), fc.nat(4_096)),
  });
  const look = fc.record({
    passedMs: fc.nat(20_000),
    callers: fc.dictionary(fc.constantFrom("a", "b", "c"), streams),
  });
  fc.assert(
    fc.property(fc.array(look, { maxLength: 60 }), (looks) => {
      const state = createStreamLimitsState(OPTIONS);
      const busyAt = new Map<string, number>();
      let now = 0;
      for (const { passedMs, callers: its } of looks) {
        now += passedMs;
        const limits = lookAtStreams(state, callers(its), now);
        for (const caller of ["a", "b", "c"]) {
          const at = its[caller];
          const limit = limits.get(caller);
          if (at === undefined) {
            expect(limit).toBeUndefined();
            busyAt.delete(caller);
            continue;
          }
          const piles = at.held >= OPTIONS.heldMost;
          if (piles || (busyAt.has(caller) && (at.held > 0 || at.inFlight * 2 >= NARROW_STREAMS))) {
            busyAt.set(caller, now);
          }
          const isNarrow = busyAt.has(caller) && now - busyAt.get(caller)! < OPTIONS.calmMs;
          expect(limit !== undefined).toBe(isNarrow);
          if (!isNarrow) busyAt.delete(caller);
          if (limit === undefined) continue;
          expect(limit).toBeGreaterThanOrEqual(OPTIONS.least);
          expect(limit * at.connections).toBeLessThanOrEqual(
            Math.max(NARROW_STREAMS, OPTIONS.least * at.connections),
          );
        }
      }
      // Nobody that is gone is remembered.
      lookAtStreams(state, new Map(), now);
      expect(state.narrow.size).toBe(0);
    }),
  );
});

test("a caller stays narrow while it is refused, or fills half of what it may", () => {
  const state = createStreamLimitsState(OPTIONS);
  const at = (held: number, inFlight: number, now: number) =>
    lookAtStreams(state, callers({ a: { connections: 4, inFlight, held } }), now).get("a");
  expect(at(127, 4_096, 0)).toBeUndefined();
  expect(at(128, 4_096, 0)).toBe(24);
  expect(at(1, 1, 11_000)).toBe(24);
  expect(at(0, 48, 22_000)).toBe(24);
  expect(at(0, 47, 31_999)).toBe(24);
  expect(at(0, 47, 32_000)).toBeUndefined();
});
