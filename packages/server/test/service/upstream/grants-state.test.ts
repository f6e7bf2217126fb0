import { expect, test } from "vitest";
import {
  callEnded,
  createGrantsState,
  isAnswerTo,
  nextCall,
  takeQueued,
  want,
} from "../../../src/service/upstream/grants-state.ts";

/** Tags with a slash are of the part before it. */
const groupOf = (tag: string): string => (tag.includes("/") ? (tag.split("/")[0] ?? "") : "");

function stateWith(tags: readonly string[], options = {}) {
  const state = createGrantsState({
    maxBatch: 3,
    maxCalls: 2,
    maxWaiting: 1,
    maxQueued: 10,
    groupOf,
    ...options,
  });
  for (const [id, tag] of tags.entries()) {
    want(state, { id, request: { tag, kind: "segment", count: 1, minCount: 1, after: 0n } });
  }
  return state;
}

function idsOf(call: ReturnType<typeof nextCall>): number[] | undefined {
  return call?.batch.map(({ id }) => id);
}

test("a call holds as many tags as it may, and no tag twice", () => {
  const state = stateWith(["a", "a", "b", "c", "d"]);
  expect(idsOf(nextCall(state))).toEqual([0, 2, 3]);
  expect(idsOf(nextCall(state))).toEqual([4]);
});

test("a tag is in one call at a time, and its requests keep their order", () => {
  const state = stateWith(["a", "a", "a"]);
  const first = nextCall(state);
  expect(idsOf(first)).toEqual([0]);
  expect(nextCall(state)).toBeUndefined();
  if (first !== undefined) callEnded(state, first);
  const second = nextCall(state);
  expect(idsOf(second)).toEqual([1]);
});

test("no more calls are in flight than allowed", () => {
  const state = stateWith(["a", "b", "c"], { maxBatch: 1 });
  const first = nextCall(state);
  nextCall(state);
  expect(nextCall(state)).toBeUndefined();
  if (first !== undefined) callEnded(state, first);
  expect(idsOf(nextCall(state))).toEqual([2]);
});

test("a store that is one and takes no more calls has nothing looked at in its queue", () => {
  const state = stateWith(["a", "b", "c"], { maxBatch: 1, groupOf: undefined });
  const first = nextCall(state);
  expect(idsOf(first)).toEqual([0]);
  expect(idsOf(nextCall(state))).toEqual([1]);
  const { queued } = state;
  state.queued = new Proxy(queued, {
    get(list, key): unknown {
      if (key !== "length") throw new Error("the queue was gone through");
      return list.length;
    },
  });
  expect(nextCall(state)).toBeUndefined();
  state.queued = queued;
  if (first !== undefined) callEnded(state, first);
  expect(idsOf(nextCall(state))).toEqual([2]);
});

test("a part of the store that does not answer takes no calls from the others", () => {
  const state = stateWith(["a/1", "a/2", "b/1", "a/3", "b/2", "a/4"], { maxBatch: 1 });
  expect(idsOf(nextCall(state))).toEqual([0]);
  expect(idsOf(nextCall(state))).toEqual([1]);
  expect(idsOf(nextCall(state))).toEqual([2]);
  expect(idsOf(nextCall(state))).toEqual([4]);
  expect(nextCall(state)).toBeUndefined();
});

test("a call is of one part of the store", () => {
  const state = stateWith(["a/1", "b/1", "a/2", "b/2"]);
  expect(idsOf(nextCall(state))).toEqual([0, 2]);
  expect(idsOf(nextCall(state))).toEqual([1, 3]);
});

test("a queue that is full takes nothing more", () => {
  const state = stateWith([], { maxQueued: 1 });
  const request = { tag: "a", kind: "segment", count: 1, minCount: 1, after: 0n } as const;
  expect(want(state, { id: 1, request })).toBe(true);
  expect(want(state, { id: 2, request })).toBe(false);
});

test("only an answer that fits its request is one", () => {
  const request = {
    tag: "a",
    kind: "segment",
    count: 10,
    minCount: 5,
    after: 100n,
    seenVersion: 0n,
  } as const;
  const granted = {
    outcome: "granted",
    tag: "a",
    base: 101n,
    count: 10,
    version: 1n,
    epoch: 1n,
    period: undefined,
  } as const;
  expect(isAnswerTo(request, granted)).toBe(true);
  expect(isAnswerTo(request, { ...granted, count: 5 })).toBe(true);
  expect(isAnswerTo(request, { ...granted, tag: "b" })).toBe(false);
  expect(isAnswerTo(request, { ...granted, count: 4 })).toBe(false);
  expect(isAnswerTo(request, { ...granted, count: 11 })).toBe(false);
  expect(isAnswerTo(request, { ...granted, count: 5.5 })).toBe(false);
  expect(isAnswerTo(request, { ...granted, base: 100n })).toBe(false);
  expect(isAnswerTo(request, { outcome: "refused", tag: "a", reason: "TAG_PAUSED" })).toBe(true);
  expect(isAnswerTo(request, { outcome: "refused", tag: "b", reason: "TAG_PAUSED" })).toBe(false);
});

/** The next call, which finds the rows of some of its tags locked. */
function skipped(state: ReturnType<typeof stateWith>, locked: readonly number[]) {
  const call = nextCall(state);
  if (call !== undefined) {
    callEnded(
      state,
      call,
      call.batch.filter(({ id }) => locked.includes(id)),
    );
  }
  return call;
}

test("only a call with one tag waits for a lock, and those that were skipped follow alone", () => {
  const state = stateWith(["a", "b", "c"]);
  expect(skipped(state, [0, 2])?.skipLocked).toBe(true);
  const alone = nextCall(state);
  expect(alone).toMatchObject({ skipLocked: false });
  expect(idsOf(alone)).toEqual([0]);
  // One waits, which is as many as may.
  expect(nextCall(state)).toBeUndefined();
  if (alone !== undefined) callEnded(state, alone);
  expect(idsOf(nextCall(state))).toEqual([2]);
});

test("a call with one tag waits while so many may, and skips otherwise", () => {
  const state = stateWith(["a"], { maxCalls: 3 });
  expect(nextCall(state)?.skipLocked).toBe(false);
  want(state, { id: 7, request: { tag: "b", kind: "segment", count: 1, minCount: 1, after: 0n } });
  expect(nextCall(state)?.skipLocked).toBe(true);
});

test("while none may wait, those that were skipped go along with calls that skip", () => {
  const state = stateWith(["a", "b", "c"], { maxCalls: 3 });
  skipped(state, [0, 1]);
  expect(idsOf(nextCall(state))).toEqual([0]);
  expect(nextCall(state)).toBeUndefined();
  want(state, { id: 8, request: { tag: "d", kind: "segment", count: 1, minCount: 1, after: 0n } });
  const both = nextCall(state);
  expect(both?.skipLocked).toBe(true);
  expect(idsOf(both)).toEqual([8, 1]);
});

test("a tag that was skipped keeps its place before later requests, and is given up with the queue", () => {
  const state = stateWith(["a", "b", "a"]);
  skipped(state, [0]);
  expect(idsOf(nextCall(state))).toEqual([0]);
  expect(nextCall(state)).toBeUndefined();
  const other = stateWith(["a", "b", "a"]);
  skipped(other, [0]);
  expect(takeQueued(other).map(({ id }) => id)).toEqual([0, 2]);
  want(other, { id: 9, request: { tag: "a", kind: "segment", count: 1, minCount: 1, after: 0n } });
  expect(idsOf(nextCall(other))).toEqual([9]);
});

test("calls of a part whose rows are locked take nothing from the other parts", () => {
  const state = stateWith(["a/1", "a/2", "b/1", "b/2"]);
  const calls = [nextCall(state), nextCall(state)];
  for (const call of calls) if (call !== undefined) callEnded(state, call, call.batch);
  expect(idsOf(nextCall(state))).toEqual([0]);
  expect(idsOf(nextCall(state))).toEqual([2]);
  expect(nextCall(state)).toBeUndefined();
});
