import { expect, test } from "vitest";
import {
  answered,
  batchFailed,
  believeAbsent,
  createLookupState,
  forgetAll,
  LOOKUP_OPTIONS,
  type LookupOptions,
  nextBatch,
  overtaken,
  unwish,
  wish,
} from "../../../src/service/upstream/lookup-state.ts";

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

test("a name that nobody waits for any more is not asked for, and one that is wished again is", () => {
  const state = createLookupState(OPTIONS);
  expect(nextBatch(state, 0)).toBeUndefined();
  wish(state, "a", 0);
  wish(state, "b", 0);
  unwish(state, "a");
  expect(nextBatch(state, 0)).toEqual({ names: ["b"] });
  batchFailed(state);
  expect(batchFailed(state)).toEqual([]);
  wish(state, "b", 49);
  expect(nextBatch(state, 49)).toEqual({ at: 50 });
  expect(nextBatch(state, 50)).toEqual({ names: ["b"] });
});

test("a record that was not asked for, or of a name that left, is not taken", () => {
  const state = createLookupState(OPTIONS);
  expect(answered(state, [alive("a")], 0)).toEqual({ admitted: [], absent: [] });
  wish(state, "b", 0);
  nextBatch(state, 0);
  expect(answered(state, [alive("a"), alive("b")], 10)).toEqual({
    admitted: [alive("b")],
    absent: [],
  });
  // What is there is asked for anew by whoever does not know it.
  expect(wish(state, "b", 20)).toBe("asked");
});

test("what was believed is believed anew from each answer, and not at all of another history", () => {
  const state = createLookupState(OPTIONS);
  believeAbsent(state, "a", 0);
  believeAbsent(state, "b", 0);
  believeAbsent(state, "a", 500);
  expect(wish(state, "a", 1_499)).toBe("absent");
  // The oldest of three is b.
  believeAbsent(state, "c", 500);
  expect(["a", "c", "b"].map((name) => wish(state, name, 600))).toEqual([
    "absent",
    "absent",
    "asked",
  ]);
  forgetAll(state);
  expect(["a", "c"].map((name) => wish(state, name, 600))).toEqual(["asked", "asked"]);
});

test("a name whose record was seen elsewhere is neither absent nor asked for", () => {
  const state = createLookupState(OPTIONS);
  believeAbsent(state, "a", 0);
  wish(state, "b", 0);
  for (const name of ["a", "b"]) overtaken(state, name);
  expect(nextBatch(state, 0)).toBeUndefined();
  expect(wish(state, "a", 0)).toBe("asked");
});

test("an absence that is over is forgotten, and makes room for none that is believed", () => {
  const state = createLookupState(OPTIONS);
  believeAbsent(state, "a", 0);
  expect(wish(state, "a", 1_000)).toBe("asked");
  expect([...state.absent.keys()]).toEqual([]);
});

test("a storm of unknown names costs the store 20 statements a second of 1,000 names, and a bounded memory", () => {
  const state = createLookupState(LOOKUP_OPTIONS);
  const names = Array.from({ length: 10_001 }, (_, i) => `n${i}`);
  const wished = names.map((name) => wish(state, name, 0));
  expect(wished.indexOf("full")).toBe(10_000);
  let now = 0;
  for (let batch = 0; batch < 10; batch++, now += 50) {
    if (batch > 0) expect(nextBatch(state, now - 1)).toEqual({ at: now });
    nextBatch(state, now);
    expect(state.inFlight?.size).toBe(1_000);
    answered(state, [], now);
  }
  expect(state.absent.size).toBe(10_000);
  believeAbsent(state, "one more", now);
  expect(state.absent.size).toBe(10_000);
  // The first of them for five seconds.
  expect([...state.absent.values()][0]).toBe(5_000);
});
