import { initialSlots, lastIdUpTo } from "@idmint/core/server";
import { planMoves } from "../../../src/server/ticket/plan.ts";
import fc from "fast-check";
import { expect, test } from "vitest";

const names = ["a", "b", "c", "d", "e"];

function counts(owners: ReadonlyMap<number, string>, of: readonly string[]): number[] {
  return of.map((name) => [...owners.values()].filter((owner) => owner === name).length);
}

function spread(slots: number, on: readonly string[]): Map<number, string> {
  const owners = new Map<number, string>();
  initialSlots(slots, on.length).forEach((own, at) => {
    for (const slot of own) owners.set(slot, on[at] ?? "");
  });
  return owners;
}

test("a new tag's slots lie evenly, each with one database", () => {
  expect(initialSlots(5, 2)).toEqual([
    [0, 2, 4],
    [1, 3],
  ]);
  expect(initialSlots(1, 3)).toEqual([[0], [], []]);
});

test("from 2 to 3 databases a third of the slots moves, and back only what the third has", () => {
  const two = spread(60, ["a", "b"]);
  const there = planMoves(two, ["a", "b", "c"]);
  expect(there).toHaveLength(20);
  expect(new Set(there.map(({ to }) => to))).toEqual(new Set(["c"]));
  const three = new Map(two);
  for (const { slot, to } of there) three.set(slot, to);
  const back = planMoves(three, ["a", "b"]);
  expect(back.map(({ slot }) => slot)).toEqual(there.map(({ slot }) => slot));
  expect(new Set(back.map(({ from }) => from))).toEqual(new Set(["c"]));
});

test("a plan is even, takes the fewest moves, and is empty when carried out", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 80 }),
      fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 5 }),
      (placed, targets) => {
        const owners = new Map(placed.map((name, slot) => [slot, name]));
        const moves = planMoves(owners, targets);
        const after = new Map(owners);
        for (const { slot, from, to } of moves) {
          expect(after.get(slot)).toBe(from);
          after.set(slot, to);
        }
        const held = counts(after, targets);
        expect(held.reduce((sum, count) => sum + count, 0)).toBe(placed.length);
        expect(Math.max(...held) - Math.min(...held)).toBeLessThanOrEqual(1);
        expect(planMoves(after, targets)).toEqual([]);
        // No even spread keeps more slots where they are: those with most keep the odd ones.
        const before = counts(owners, targets).toSorted((a, b) => b - a);
        const odd = placed.length % targets.length;
        const least = Math.floor(placed.length / targets.length);
        const kept = before.reduce(
          (sum, count, at) => sum + Math.min(count, least + (at < odd ? 1 : 0)),
          0,
        );
        expect(moves).toHaveLength(placed.length - kept);
      },
    ),
  );
});

test("slots never go nowhere", () => {
  expect(() => planMoves(new Map([[0, "a"]]), [])).toThrow(RangeError);
});

test("the last id up to a bound is of the slot, and no other of it lies between", () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
      fc.integer({ min: 1, max: 1_024 }),
      fc.nat(1_023),
      (bound, slots, any) => {
        const slot = any % slots;
        const last = lastIdUpTo(bound, slot, slots);
        expect(last).toBeLessThanOrEqual(bound);
        expect(last + BigInt(slots)).toBeGreaterThan(bound);
        expect((last - BigInt(slot)) % BigInt(slots)).toBe(0n);
      },
    ),
  );
});
