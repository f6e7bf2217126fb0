import { expect, test } from "vitest";
import {
  answered,
  appeared,
  batchFailed,
  createLookupState,
  type LookupOptions,
  nextBatch,
  unwish,
  wish,
} from "../../src/service/lookup-state.ts";

const OPTIONS: LookupOptions = {
  maxBatch: 3,
  maxQueued: 5,
  maxAbsent: 2,
  pauseMs: 50,
  absentForMs: 1_000,
};

test("names that are asked for together go in one batch, each once, and the rest after a pause", () => {
  const state = createLookupState(OPTIONS);
  for (const name of ["a", "b", "a", "c", "d"]) expect(wish(state, name, 0)).toBe("asked");
  expect(nextBatch(state, 0)).toEqual({ names: ["a", "b", "c"] });
  expect(wish(state, "a", 1)).toBe("asked");
  expect(nextBatch(state, 60)).toBeUndefined();
  answered(state, new Set(["a", "b", "c"]), 60);
  expect(nextBatch(state, 40)).toEqual({ at: 50 });
  expect(nextBatch(state, 60)).toEqual({ names: ["d"] });
});

test("with too many names waiting a further one is refused", () => {
  const state = createLookupState(OPTIONS);
  for (const name of ["a", "b", "c", "d", "e"]) wish(state, name, 0);
  expect(wish(state, "f", 0)).toBe("full");
  expect(wish(state, "a", 0)).toBe("asked");
  unwish(state, "a");
  expect(wish(state, "f", 0)).toBe("asked");
});

test("an absence is believed for its time, and the oldest is forgotten first", () => {
  const state = createLookupState(OPTIONS);
  for (const name of ["a", "b", "c"]) wish(state, name, 0);
  nextBatch(state, 0);
  expect(answered(state, new Set(), 10)).toEqual(["a", "b", "c"]);
  expect(wish(state, "a", 20)).toBe("asked");
  expect(wish(state, "b", 1_009)).toBe("absent");
  expect(wish(state, "b", 1_010)).toBe("asked");
});

test("a name that appears is not called absent by an answer that was under way", () => {
  const state = createLookupState(OPTIONS);
  wish(state, "a", 0);
  wish(state, "b", 0);
  nextBatch(state, 0);
  appeared(state, "a");
  expect(answered(state, new Set(), 10)).toEqual(["b"]);
  expect(wish(state, "a", 20)).toBe("asked");
});

test("a batch that failed says nothing about its names", () => {
  const state = createLookupState(OPTIONS);
  wish(state, "a", 0);
  nextBatch(state, 0);
  expect(batchFailed(state)).toEqual(["a"]);
  expect(wish(state, "a", 20)).toBe("asked");
});
