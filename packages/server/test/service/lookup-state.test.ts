import { expect, test } from "vitest";
import {
  answered,
  batchFailed,
  createLookupState,
  type LookupOptions,
  nextBatch,
  overtaken,
  unwish,
  wish,
} from "../../src/service/upstream/lookup-state.ts";

const OPTIONS: LookupOptions = {
  maxBatch: 3,
  maxQueued: 5,
  maxAbsent: 2,
  pauseMs: 50,
  absentForMs: 1_000,
};

const alive = (name: string) => ({ name, state: "ACTIVE" }) as const;

test("names that are asked for together go in one batch, each once, and the rest after a pause", () => {
  const state = createLookupState(OPTIONS);
  for (const name of ["a", "b", "a", "c", "d"]) expect(wish(state, name, 0)).toBe("asked");
  expect(nextBatch(state, 0)).toEqual({ names: ["a", "b", "c"] });
  expect(wish(state, "a", 1)).toBe("asked");
  expect(nextBatch(state, 60)).toBeUndefined();
  answered(state, ["a", "b", "c"].map(alive), 60);
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
  expect(answered(state, [], 10).absent).toEqual(["a", "b", "c"]);
  expect(wish(state, "a", 20)).toBe("asked");
  expect(wish(state, "b", 1_009)).toBe("absent");
  expect(wish(state, "b", 1_010)).toBe("asked");
});

test("an answer that was under way says nothing of a name that was seen elsewhere meanwhile", () => {
  const state = createLookupState(OPTIONS);
  wish(state, "a", 0);
  wish(state, "b", 0);
  wish(state, "c", 0);
  nextBatch(state, 0);
  for (const name of ["a", "b"]) overtaken(state, name);
  expect(answered(state, [alive("b")], 10)).toEqual({ admitted: [], absent: ["c"] });
  for (const name of ["a", "b"]) expect(wish(state, name, 20)).toBe("asked");
  expect(nextBatch(state, 50)).toEqual({ names: ["a", "b"] });
});

test("a tombstone is a record, and its name is absent", () => {
  const state = createLookupState(OPTIONS);
  wish(state, "a", 0);
  nextBatch(state, 0);
  const tombstone = { name: "a", state: "DELETED" } as const;
  expect(answered(state, [tombstone], 10)).toEqual({ admitted: [tombstone], absent: ["a"] });
  expect(wish(state, "a", 20)).toBe("absent");
});

test("a batch that failed says nothing about its names", () => {
  const state = createLookupState(OPTIONS);
  wish(state, "a", 0);
  nextBatch(state, 0);
  expect(batchFailed(state)).toEqual(["a"]);
  expect(wish(state, "a", 20)).toBe("asked");
});
