import fc from "fast-check";
import { beganToWait, createWaitingState, endedToWait, mayWait } from "@idmint/core/server";
import { expect, test } from "vitest";

test("never more calls wait than may, whoever comes and goes", () => {
  const events = fc.array(
    fc.record({ caller: fc.constantFrom("a", "b", "c", "d"), ends: fc.boolean() }),
    { maxLength: 500 },
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 60 }), events, (limit, all) => {
      const state = createWaitingState(limit);
      const waiting: string[] = [];
      for (const { caller, ends } of all) {
        if (ends) {
          const [one] = waiting.splice(0, 1);
          if (one !== undefined) endedToWait(state, one);
        } else if (mayWait(state, caller)) {
          beganToWait(state, caller);
          waiting.push(caller);
        }
        expect(state.total).toBe(waiting.length);
        expect(state.total).toBeLessThanOrEqual(limit);
        expect(state.callers.size).toBe(new Set(waiting).size);
      }
    }),
  );
});

test("who has few calls waiting is not refused because others have many", () => {
  const state = createWaitingState(100);
  let taken = 0;
  while (mayWait(state, "storm")) {
    beganToWait(state, "storm");
    taken++;
  }
  expect(taken).toBe(50);
  // Half of the other half is the newcomer's.
  for (let i = 0; i < 25; i++) {
    expect(mayWait(state, "modest")).toBe(true);
    beganToWait(state, "modest");
  }
  expect(mayWait(state, "modest")).toBe(false);
  endedToWait(state, "modest");
  expect(mayWait(state, "modest")).toBe(true);
  expect(mayWait(state, "storm")).toBe(false);
});
