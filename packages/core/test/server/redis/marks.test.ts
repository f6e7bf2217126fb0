// What a server knows of how far tags had counted in Redis, and what it does when a higher generation was answered.
import { expect, test } from "vitest";
import {
  createMarkState,
  expectMark,
  knownGenerations,
  knownMark,
  type MarkState,
  marksTold,
  newestMarked,
  raiseMark,
  risenMarks,
} from "../../../src/server/redis/mark-state.ts";
import { outdated, placeRead, startSeeding } from "../../../src/server/redis/seeding-state.ts";
import type { RedisMark } from "../../../src/server/store/redis-bounds.ts";

const five = { tag: "t", generation: 5n };
const six = { tag: "t", generation: 6n };

/** One turn with a store that keeps `kept`. */
function turn(state: MarkState, kept: readonly RedisMark[]): readonly RedisMark[] {
  const asked = knownGenerations(state);
  const sent = risenMarks(state, asked);
  marksTold(state, asked, sent, kept);
  return sent;
}

test("is sent until the store keeps it, and again when the store lost it", () => {
  const state = createMarkState(10);
  raiseMark(state, { ...five, mark: 7n });
  expect(turn(state, [])).toEqual([{ ...five, mark: 7n }]);
  expect(turn(state, [{ ...five, mark: 7n }])).toEqual([]);
  expect(turn(state, [{ ...five, mark: 3n }])).toEqual([]);
  expect(turn(state, [{ ...five, mark: 7n }])).toEqual([{ ...five, mark: 7n }]);
});

test("is the highest of what was answered here and to others, and never falls", () => {
  const state = createMarkState(10);
  expect(knownMark(state, five)).toBeUndefined();
  marksTold(state, [five], [], [{ ...five, mark: 40n }]);
  expect(knownMark(state, five)).toBe(40n);
  raiseMark(state, { ...five, mark: 30n });
  expect(knownMark(state, five)).toBe(40n);
  turn(state, [{ ...five, mark: 20n }]);
  expect(knownMark(state, five)).toBe(40n);
});

test("a late answer about another generation takes no place of the one that is to be read", () => {
  const state = createMarkState(10);
  raiseMark(state, { ...five, mark: 7n });
  const asked = knownGenerations(state);
  expectMark(state, six);
  expect(knownMark(state, six)).toBeUndefined();
  expect([knownGenerations(state), risenMarks(state, [six])]).toEqual([[], []]);
  // The other generation was asked for before.
  marksTold(state, asked, [], [{ ...five, mark: 7n }]);
  marksTold(state, [six], [], [{ ...six, mark: 40n }]);
  expect(knownMark(state, six)).toBe(40n);
});

test("compares counts within one generation alone, and tells of higher ones", () => {
  const state = createMarkState(10);
  raiseMark(state, { ...five, mark: 7n });
  turn(state, [
    { ...five, mark: 9n },
    { ...six, mark: 1_000n },
  ]);
  expect(knownMark(state, five)).toBe(9n);
  expect(newestMarked(state, "t")).toBe(6n);
  expectMark(state, six);
  expect(knownMark(state, five)).toBeUndefined();
  expect(newestMarked(state, "t")).toBe(0n);
  marksTold(state, [six], [], [{ ...six, mark: 1_000n }]);
  expect(knownMark(state, six)).toBe(1_000n);
});

test("a late answer about a generation does not take the place of the next one", () => {
  const state = createMarkState(10);
  raiseMark(state, { ...five, mark: 7n });
  raiseMark(state, { ...six, mark: 1n });
  marksTold(state, [five], [], [{ ...five, mark: 9n }]);
  expect(knownMark(state, six)).toBe(1n);
  expect(risenMarks(state, [six])).toEqual([{ ...six, mark: 1n }]);
});

test("knows a bounded number of tags, and lets go of those known longest", () => {
  const state = createMarkState(3);
  for (const tag of ["a", "b", "c", "d"]) raiseMark(state, { tag, generation: 1n, mark: 1n });
  expect(knownGenerations(state).map(({ tag }) => tag)).toEqual(["b", "c", "d"]);
});

test("a higher generation that somebody was answered under is read from the row, or given a new start", () => {
  const { state, step } = outdated(startSeeding(5n), 7n);
  expect(step).toEqual({ type: "read-place" });
  const there = placeRead(state, "a", { redisServer: "a", generation: 8n });
  expect(there).toMatchObject({ state: { generation: 8n }, step: { type: "ask-again" } });
  // The row lost it too: a Redis that has the row's generation again is not believed.
  const lost = placeRead(state, "a", { redisServer: "a", generation: 6n });
  expect(lost.step).toMatchObject({ type: "re-seed" });
});
