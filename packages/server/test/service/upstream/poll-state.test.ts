import { type StoreChanges, stoppedSince, type Tag } from "@idmint/core/server";
import { expect, test } from "vitest";
import {
  createPollState,
  fenceOf,
  pollAnswered,
  pollFailed,
  resumeHistory,
} from "../../../src/service/upstream/poll-state.ts";

function changes(more: Partial<StoreChanges> = {}): StoreChanges {
  return {
    incarnation: "one",
    revision: 10n,
    changed: [],
    more: false,
    behind: [],
    fenced: "",
    parts: [],
    nowMs: 0,
    ...more,
  };
}

function started(more: Partial<StoreChanges> = {}) {
  const state = createPollState(2n ** 63n - 1n);
  pollAnswered(state, changes(more), 0);
  return state;
}

function tag(revision: bigint): Tag {
  return { name: `tag-${revision}`, revision } as Tag;
}

test("the first answer tells where the store is, and changes nothing", () => {
  const state = createPollState(2n ** 63n - 1n);
  expect(pollAnswered(state, changes({ behind: ["a"] }), 0)).toEqual([]);
  expect(state).toMatchObject({ present: "one", since: 10n });
});

test("changes are taken up to the revision they were read at, or page by page", () => {
  const state = started();
  const changed = [tag(11n), tag(12n)];
  expect(pollAnswered(state, changes({ revision: 20n, changed, more: true }), 0)).toEqual([
    { type: "changed", tags: changed },
    { type: "poll-again" },
  ]);
  expect(state.since).toBe(12n);
  pollAnswered(state, changes({ revision: 20n, changed: [tag(20n)] }), 0);
  expect(state.since).toBe(20n);
});

test("a changed tag whose row cannot be read is refused, and the next page goes on behind it", () => {
  const state = started();
  const unreadable = [{ tag: "a", detail: "it is nonsense" }];
  const found = changes({ revision: 20n, unreadable, more: true, next: 15n });
  expect(pollAnswered(state, found, 0)).toEqual([
    { type: "refuse-tag", tag: "a", detail: "it is nonsense" },
    { type: "poll-again" },
  ]);
  expect(state.since).toBe(15n);
});

test("a lower revision fences everything for good", () => {
  const state = started();
  const effects = pollAnswered(state, changes({ revision: 9n }), 0);
  expect(effects).toEqual([{ type: "fence-all", detail: expect.any(String) as string }]);
  expect(pollAnswered(state, changes({ revision: 11n }), 0)).toEqual([]);
  expect(fenceOf(state)).not.toBe("");
});

test("what the store says against granting fences as long as it says so", () => {
  const state = started();
  expect(pollAnswered(state, changes({ fenced: "it moved" }), 0)).toEqual([
    { type: "fence-all", detail: "it moved" },
  ]);
  expect(pollAnswered(state, changes({ fenced: "it moved" }), 0)).toEqual([]);
  expect(pollAnswered(state, changes(), 0)).toEqual([{ type: "unfence-all" }]);
});

test("a store that is fenced from the start is told of", () => {
  const state = createPollState(0n);
  expect(pollAnswered(state, changes({ fenced: "it moved" }), 0)).toEqual([
    { type: "fence-all", detail: "it moved" },
  ]);
});

test("a new history lifts every fence, and what it says of the old one is not looked at", () => {
  const state = started();
  pollAnswered(state, changes({ revision: 1n }), 0);
  const next = changes({ incarnation: "two", revision: 5n, changed: [tag(4n)], behind: ["a"] });
  expect(pollAnswered(state, next, 0)).toEqual([{ type: "new-history", incarnation: "two" }]);
  expect(state).toMatchObject({ present: "two", since: 5n });
});

test("a history that was left never comes back", () => {
  const state = started();
  pollAnswered(state, changes({ incarnation: "two" }), 0);
  const effects = pollAnswered(state, changes({ incarnation: "one" }), 0);
  expect(effects.map((effect) => effect.type)).toEqual(["fence-all"]);
  // Back in the second, nothing is better: what was granted meanwhile is not known.
  expect(pollAnswered(state, changes({ incarnation: "two" }), 0)).toEqual([]);
  expect(fenceOf(state)).not.toBe("");
  const third = pollAnswered(state, changes({ incarnation: "three" }), 0);
  expect(third.map((effect) => effect.type)).toEqual(["new-history"]);
});

test("a new history that is fenced itself is fenced anew, though for the same reason as the old one", () => {
  const state = started({ fenced: "it moved" });
  const next = changes({ incarnation: "two", fenced: "it moved" });
  expect(pollAnswered(state, next, 0)).toEqual([
    { type: "new-history", incarnation: "two" },
    { type: "fence-all", detail: "it moved" },
  ]);
});

test("tags behind what was seen are fenced one by one", () => {
  const state = started();
  const detail = expect.stringContaining("missing, or has a lower version") as string;
  expect(pollAnswered(state, changes({ behind: ["a", "b"] }), 0)).toEqual([
    { type: "fence-tags", tags: ["a", "b"], detail },
  ]);
});

test("of a tag whose row another hand wrote nobody hears that it went back", () => {
  const state = started();
  expect(
    pollAnswered(state, changes({ behind: ["a", "b"], changedByHand: ["b"] }), 0),
  ).toMatchObject([
    { tags: ["a"], detail: expect.stringContaining("missing, or has a lower version") as string },
    { tags: ["b"], detail: expect.stringContaining("changed by hand") as string },
  ]);
});

test("a store that is lost is told of once, and so is its return", () => {
  const state = started();
  expect(pollFailed(state, 100)).toEqual([{ type: "store-lost" }]);
  expect(pollFailed(state, 200)).toEqual([]);
  expect(pollAnswered(state, changes(), 500)).toEqual([{ type: "store-back", afterMs: 400 }]);
});

function said(revision: bigint, stoppedAtMs?: number, incarnation = "one") {
  const part = { name: "", incarnation, revision, isRenewed: true, nodes: [], traffic: [] };
  return { parts: [{ ...part, issuing: { revision, stoppedAtMs } }] };
}

test("a stop is obeyed before what was changed with it, and a resumption after", () => {
  const state = started();
  const changed = [tag(11n)];
  expect(pollAnswered(state, changes({ revision: 12n, changed, ...said(12n, 5) }), 0)).toEqual([
    { type: "stop-issuing", sinceMs: 5 },
    { type: "changed", tags: changed },
  ]);
  expect(pollAnswered(state, changes({ revision: 14n, changed, ...said(14n) }), 0)).toEqual([
    { type: "changed", tags: changed },
    { type: "resume-issuing" },
  ]);
});

test("a server that starts finds the others stopped with its first poll, and goes on so when it starts again", () => {
  const state = createPollState(2n ** 63n - 1n);
  const first = pollAnswered(state, changes(said(10n, 5)), 0);
  expect(first).toEqual([{ type: "stop-issuing", sinceMs: 5 }]);
  const again = createPollState(0n);
  resumeHistory(again, { incarnation: "one", since: 10n, issuing: state.issuing });
  expect(pollAnswered(again, changes(said(10n, 5)), 0)).toEqual([]);
  expect(pollAnswered(again, changes({ revision: 11n, ...said(11n) }), 0)).toEqual([
    { type: "resume-issuing" },
  ]);
});

test("a store that is not the accepted one resumes nothing, whatever it says", () => {
  const state = started(said(10n, 5));
  const left = { ...said(3n, undefined, "another"), incarnation: "another" };
  pollAnswered(state, changes({ fenced: "a copy", ...left }), 0);
  expect(stoppedSince(state.issuing)).toBe(5);
});

test("why a store takes no writes counts until the next answer", () => {
  const state = started();
  pollAnswered(state, changes({ refusesWrites: "it is full" }), 0);
  expect(state.refusesWrites).toBe("it is full");
  pollAnswered(state, changes(), 0);
  expect(state.refusesWrites).toBe("");
});

test("a warning is told once, again in other words, and when it is over", () => {
  const state = started();
  const warned = changes({ warning: "soon" });
  expect(pollAnswered(state, warned, 0)).toEqual([{ type: "store-warning", detail: "soon" }]);
  expect(pollAnswered(state, warned, 0)).toEqual([]);
  const other = changes({ warning: "sooner" });
  expect(pollAnswered(state, other, 0)).toEqual([{ type: "store-warning", detail: "sooner" }]);
  expect(pollAnswered(state, changes(), 0)).toEqual([{ type: "store-warning-over" }]);
  expect(pollAnswered(state, changes(), 0)).toEqual([]);
});

test("a history that an earlier life of the server left is none to begin in", () => {
  const state = createPollState(2n ** 63n - 1n, { present: undefined, left: ["zero"] });
  const [fence] = pollAnswered(state, changes({ incarnation: "zero" }), 0);
  expect(fence).toMatchObject({
    type: "fence-all",
    detail: "it is as it was before it was accepted",
  });
  expect(pollAnswered(state, changes({ incarnation: "zero", revision: 99n }), 0)).toEqual([]);
  expect(fenceOf(state)).not.toBe("");
  pollAnswered(state, changes(), 0);
  expect(fenceOf(state)).toBe("");
});

test("the history in which an earlier life ended was left if another one is there now", () => {
  const state = createPollState(2n ** 63n - 1n, { present: "zero", left: [] });
  expect(pollAnswered(state, changes(), 0)).toEqual([]);
  const [fence] = pollAnswered(state, changes({ incarnation: "zero" }), 0);
  expect(fence).toMatchObject({ type: "fence-all" });
});

test("a server goes on in the history in which its earlier life ended", () => {
  const state = createPollState(2n ** 63n - 1n, { present: "one", left: ["zero"] });
  expect(pollAnswered(state, changes(), 0)).toEqual([]);
  expect(fenceOf(state)).toBe("");
});
