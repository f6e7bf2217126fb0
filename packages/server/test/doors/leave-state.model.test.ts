import fc from "fast-check";
import { expect, test } from "vitest";
import { beginLeave, lookAtLeave } from "../../src/doors/leave-state.ts";

const FOR_MS = 10_000;

/** Looks every so many milliseconds; answers how many were told at each look, and when. `come`: how many come before each. */
function leaveAll(first: number, everyMs: number, come: (now: number) => number = () => 0) {
  let state = beginLeave(0, FOR_MS);
  let waiting = first;
  const told: { readonly at: number; readonly count: number }[] = [];
  for (let now = everyMs; state.lookedAt < state.endsAt; now += everyMs) {
    waiting += come(now);
    const [next, count] = lookAtLeave(state, now, waiting);
    state = next;
    waiting -= count;
    told.push({ at: now, count });
  }
  return { told, waiting };
}

test("all are told before the time is over, however many come and go and however late the looks are", () => {
  const looks = fc.array(
    fc.record({
      afterMs: fc.integer({ min: 1, max: 2_000 }),
      come: fc.nat(50),
      gone: fc.nat(50),
    }),
    { minLength: 1, maxLength: 60 },
  );
  fc.assert(
    fc.property(fc.nat(1_000), looks, (first, steps) => {
      let state = beginLeave(0, FOR_MS);
      let waiting = first;
      let now = 0;
      const look = (): void => {
        const [next, count] = lookAtLeave(state, now, waiting);
        expect(count).toBeGreaterThanOrEqual(0);
        expect(count).toBeLessThanOrEqual(waiting);
        expect(next.owed).toBeGreaterThanOrEqual(0);
        state = next;
        waiting -= count;
      };
      for (const { afterMs, come, gone } of steps) {
        waiting = Math.max(0, waiting + come - gone);
        now += afterMs;
        look();
      }
      now = Math.max(now, 0.9 * FOR_MS);
      look();
      expect(waiting).toBe(0);
    }),
  );
});

test("they are told evenly, and one alone neither at once nor at the end", () => {
  const { told } = leaveAll(1_000, 50);
  const before = told.filter(({ at }) => at <= FOR_MS / 2);
  const half = before.reduce((sum, { count }) => sum + count, 0);
  expect(half).toBeGreaterThan(500);
  expect(half).toBeLessThan(620);
  expect(Math.max(...told.map(({ count }) => count))).toBeLessThanOrEqual(20);
  const [alone] = leaveAll(1, 50).told.filter(({ count }) => count > 0);
  expect(alone?.at).toBeGreaterThan(FOR_MS / 4);
  expect(alone?.at).toBeLessThan((FOR_MS * 3) / 4);
});

test("whoever comes meanwhile is told too", () => {
  const { told, waiting } = leaveAll(10, 50, (now) => (now % 500 === 0 ? 5 : 0));
  expect(waiting).toBe(0);
  expect(told.reduce((sum, { count }) => sum + count, 0)).toBe(10 + 18 * 5);
});
