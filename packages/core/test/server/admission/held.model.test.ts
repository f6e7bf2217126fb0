import fc from "fast-check";
import {
  createHeldState,
  HELD_SLOT_MS,
  hold,
  mayAnswerNow,
  releaseAll,
  released,
} from "@idmint/core/server";
import { expect, test } from "vitest";

const OPTIONS = { share: 0.125, maxMs: 1_500, maxHeld: 500 };
/** 0.125 of the time, with refusals of 0.05 ms each. */
const COST_MS = 0.05;
const PER_MS = 2.5;

interface Refusal {
  readonly at: number;
  readonly until: number;
}

const storms = fc.array(
  fc.record({
    afterMs: fc.integer({ min: 0, max: 60 }),
    count: fc.integer({ min: 0, max: 300 }),
    deadlineMs: fc.oneof(fc.constant(10_000), fc.integer({ min: -50, max: 2_000 })),
  }),
  { minLength: 1, maxLength: 150 },
);

test("each refusal is answered once and in time, few are held, and the pace is kept", () => {
  fc.assert(
    fc.property(storms, (storm) => {
      const state = createHeldState<Refusal>(OPTIONS);
      const answered = new Map<Refusal, number>();
      let [now, held, forced] = [0, 0, 0];
      const answer = (refusal: Refusal, at: number): void => {
        expect(answered.has(refusal)).toBe(false);
        answered.set(refusal, at);
      };
      /** A timer that comes at least in every slot. */
      const tick = (to: number): void => {
        for (; now < to; now = Math.min(to, now + HELD_SLOT_MS / 2)) {
          for (const refusal of released(state, now, COST_MS)) {
            if (refusal.until > now + HELD_SLOT_MS) forced++;
            answer(refusal, now);
          }
        }
      };
      let atOnce = 0;
      for (const { afterMs, count, deadlineMs } of storm) {
        tick(now + afterMs);
        for (let i = 0; i < count; i++) {
          const refusal = { at: now, until: now + deadlineMs };
          if (mayAnswerNow(state, now, COST_MS)) {
            answer(refusal, now);
            atOnce++;
          } else {
            held++;
            const pushed = hold(state, refusal, refusal.until, now);
            if (pushed !== undefined) answer(pushed, now);
          }
          expect(state.count).toBeLessThanOrEqual(OPTIONS.maxHeld);
        }
      }
      // What is neither due nor pushed out keeps to the pace.
      expect(atOnce + forced).toBeLessThanOrEqual(now * PER_MS + 100 * PER_MS + 1);
      tick(now + OPTIONS.maxMs + 2 * HELD_SLOT_MS);
      expect(state.count).toBe(0);
      expect(answered.size).toBe(held + atOnce);
      for (const [{ at, until }, when] of answered) {
        const latest = Math.max(at, Math.min(until, at + OPTIONS.maxMs));
        expect(when).toBeLessThanOrEqual(latest + HELD_SLOT_MS / 2);
      }
    }),
    { numRuns: 100 },
  );
});

test("while some are held no newcomer is answered before them", () => {
  const state = createHeldState<number>(OPTIONS);
  while (mayAnswerNow(state, 0, COST_MS));
  hold(state, 1, 10_000, 0);
  expect(mayAnswerNow(state, 50, COST_MS)).toBe(false);
  expect(released(state, 50, COST_MS)).toEqual([1]);
  expect(mayAnswerNow(state, 50, COST_MS)).toBe(true);
});

test("a loop that stood still for long answers what is due, and loses nothing", () => {
  const state = createHeldState<number>(OPTIONS);
  for (let i = 0; i < 100; i++) hold(state, i, 100 + 10 * i, 0);
  for (let i = 100; i < 200; i++) hold(state, i, 70_000, 60_000);
  const due = released(state, 60_000, 1_000);
  expect(due.filter((i) => i < 100)).toHaveLength(100);
  expect([...due, ...releaseAll(state)].toSorted((a, b) => a - b)).toEqual(
    Array.from({ length: 200 }, (_, i) => i),
  );
  expect(state.count).toBe(0);
  expect(releaseAll(state)).toEqual([]);
});
