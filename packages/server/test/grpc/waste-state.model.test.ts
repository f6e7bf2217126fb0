import fc from "fast-check";
import { expect, test } from "vitest";
import {
  createWasteState,
  newWaster,
  nextToGoOn,
  wasted,
  type Waster,
} from "../../src/grpc/waste-state.ts";

// A binary fraction holds each rate exactly, so the model and the buckets agree at the limit.
const OPTIONS = { all: { perMs: 2, burst: 100 }, own: { perMs: 0.125, burst: 10 } };
/** What a connection may have sent already when it is held. */
const SENT = 50;

type Step =
  | { readonly does: "waste"; readonly who: number; readonly units: number }
  | { readonly does: "wait"; readonly ms: number }
  | { readonly does: "go on" };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      does: fc.constant("waste" as const),
      who: fc.nat(4),
      units: fc.integer({ min: 1, max: SENT }),
    }),
    fc.record({ does: fc.constant("wait" as const), ms: fc.nat(60) }),
    fc.record({ does: fc.constant("go on" as const) }),
  ),
  { maxLength: 300, size: "max" },
);

interface Waste {
  readonly at: number;
  readonly units: number;
}

/** Whether in each time t that ends now there was at most `burst + perMs × t` of it: no allowance is saved for later. */
function isWithinOwn(wastes: readonly Waste[], now: number): boolean {
  const { burst, perMs } = OPTIONS.own;
  let units = 0;
  return wastes.toReversed().every((waste) => {
    units += waste.units;
    return units <= burst + perMs * (now - waste.at);
  });
}

test("whoever keeps to its own allowance is never held, and all together waste no more than they may", () => {
  fc.assert(
    fc.property(steps, (all) => {
      let now = 0;
      const state = createWasteState<Waster>(OPTIONS, now);
      const wasters = Array.from({ length: 5 }, () => newWaster(state, now));
      const spent: Waste[][] = wasters.map(() => []);
      for (const step of all) {
        if (step.does === "wait") now += step.ms;
        else if (step.does === "go on") nextToGoOn(state, now);
        else {
          const waster = wasters[step.who];
          const wastes = [...(spent[step.who] ?? []), { at: now, units: step.units }];
          if (waster === undefined || state.held.has(waster)) continue;
          // The one with number 0 keeps to its allowance.
          if (step.who === 0 && !isWithinOwn(wastes, now)) continue;
          spent[step.who] = wastes;
          const isHeld = wasted(state, waster, step.units, now);
          if (step.who === 0) expect(isHeld).toBe(false);
        }
      }
      const used = spent.flat().reduce((sum, { units }) => sum + units, 0);
      // Its allowance, and what it had sent already, are each connection's own.
      const own = wasters.length * (OPTIONS.own.burst + OPTIONS.own.perMs * now + SENT);
      expect(used).toBeLessThanOrEqual(OPTIONS.all.burst + OPTIONS.all.perMs * now + own);
    }),
  );
});

test("held connections go on in turn, one each time that the pool is not empty", () => {
  let now = 0;
  const state = createWasteState<Waster>(OPTIONS, now);
  const wasters = Array.from({ length: 3 }, () => newWaster(state, now));
  for (const waster of wasters) expect(wasted(state, waster, 60, now)).toBe(waster !== wasters[0]);
  // The first wasted what the pool had; it is held when it wastes again, and is the last in turn.
  expect(wasted(state, wasters[0]!, 1, now)).toBe(true);
  expect(wasted(state, wasters[0]!, 1, now)).toBe(false);
  expect(nextToGoOn(state, now)).toBeUndefined();
  now += 60;
  for (const at of [1, 2, 0]) expect(nextToGoOn(state, now)).toBe(wasters[at]);
  expect(nextToGoOn(state, now)).toBeUndefined();
});

test("a pool that nobody used for long has no more than its burst", () => {
  const state = createWasteState<Waster>(OPTIONS, 0);
  const waster = newWaster(state, 0);
  expect(wasted(state, waster, 1, 1e9)).toBe(false);
  expect(wasted(state, waster, OPTIONS.all.burst, 1e9)).toBe(true);
});

test("a connection that wastes little goes on while others have used up the pool", () => {
  const state = createWasteState<Waster>(OPTIONS, 0);
  const [much, little] = [newWaster(state, 0), newWaster(state, 0)];
  expect(wasted(state, much, 1_000, 0)).toBe(true);
  expect(wasted(state, little, OPTIONS.own.burst, 0)).toBe(false);
  expect(wasted(state, little, 1, 0)).toBe(true);
});
