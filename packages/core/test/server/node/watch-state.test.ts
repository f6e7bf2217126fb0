import { expect, test } from "vitest";
import type { NodeRow, StorePart } from "../../../src/server/node/ports.ts";
import { NEVER_STOPPED } from "../../../src/server/store/issuing.ts";
import {
  createNodeWatchState,
  noteRevision,
  obedienceOf,
  obedienceSince,
  sawPart,
  stoppedNodes,
  watchedNodes,
} from "../../../src/server/node/watch-state.ts";
import { nodeRow as row } from "./node-row.ts";

const OWN = { maxOfflineMs: 1_000 };

/** A server that polls, and what it makes of it. */
function watching() {
  const state = createNodeWatchState();
  const poll = (
    sentAt: number,
    revision: number,
    nodes: readonly NodeRow[] | undefined,
    more: Partial<StorePart> & { readonly now?: number } = {},
  ): void => {
    const { now = sentAt + 10, ...rest } = more;
    const part = {
      name: "",
      incarnation: "one",
      revision: BigInt(revision),
      isRenewed: true,
      nodes,
      traffic: [],
      issuing: NEVER_STOPPED,
      ...rest,
    };
    sawPart(state, part, { id: "own", obeyed: part.revision }, { sentAt, now });
  };
  const at = (revision: number) => obedienceOf(state, "", BigInt(revision), OWN).at;
  const laggards = (revision: number) =>
    obedienceOf(state, "", BigInt(revision), OWN).laggards.map(({ row: { id }, stopsAt }) => [
      id,
      stopsAt,
    ]);
  return { state, poll, at, laggards };
}

test("alone a server knows at its next poll that everybody obeys", () => {
  const { state, poll, at } = watching();
  poll(0, 1, []);
  noteRevision(state, "", 2n, 50);
  expect(at(2)).toBeUndefined();
  poll(60, 2, [row("own", 1, { obeyed: 1n })]);
  expect(at(2)).toBe(70);
  expect(at(1)).toBe(10);
});

test("a change is in effect when every row says that it was obeyed", () => {
  const { poll, at, laggards } = watching();
  poll(0, 1, [row("a", 1, { obeyed: 1n }), row("b", 1, { obeyed: 1n })]);
  poll(100, 2, [row("a", 2, { obeyed: 2n }), row("b", 2, { obeyed: 1n })]);
  expect(laggards(2)).toEqual([["b", 110 + 1_010]]);
  // What is said at once is the latest that it can be.
  expect(at(2)).toBe(1_120);
  poll(200, 2, [row("a", 3, { obeyed: 2n }), row("b", 3, { obeyed: 2n })]);
  expect([at(2), laggards(2)]).toEqual([210, []]);
});

test("a silent server is waited for until a poll that was sent after max_offline and a hundredth", () => {
  const { state, poll, at, laggards } = watching();
  const silent = row("a", 7, { obeyed: 1n });
  // First seen at 10, by this server's clock.
  poll(0, 1, [silent]);
  poll(900, 2, [silent]);
  poll(1_019, 2, [silent], { now: 1_500 });
  expect(laggards(2)).toHaveLength(1);
  expect(stoppedNodes(state)).toEqual([]);
  poll(1_020, 2, [silent], { now: 1_600 });
  expect([at(2), laggards(2)]).toEqual([1_600, []]);
  expect(stoppedNodes(state).map(({ row: { id } }) => id)).toEqual(["a"]);
});

test("a row that moves is waited for anew, whatever it obeyed", () => {
  const { poll, laggards } = watching();
  poll(0, 1, [row("a", 1, { obeyed: 1n })]);
  poll(1_000, 2, [row("a", 2, { obeyed: 1n })]);
  poll(2_000, 2, [row("a", 2, { obeyed: 1n })]);
  expect(laggards(2)).toHaveLength(1);
});

test("a server that is seen for the first time is waited for from then on, however old its row is", () => {
  const { poll, laggards } = watching();
  poll(0, 5, []);
  poll(5_000, 6, [row("a", 1, { obeyed: 1n })]);
  expect(laggards(6)).toHaveLength(1);
});

test("nobody goes on for longer than max_offline after a change, even one whose row moves", () => {
  const { state, poll, at } = watching();
  poll(0, 1, [row("a", 1, { obeyed: 1n })]);
  noteRevision(state, "", 2n, 100);
  for (let time = 200; time < 2_000; time += 100) poll(time, 2, [row("a", time, { obeyed: 1n })]);
  expect(at(2)).toBe(100 + 1_010);
});

test("the longest max_offline counts", () => {
  const { poll, at } = watching();
  poll(0, 1, []);
  const nodes = [row("a", 1, { maxOfflineMs: 5_000 }), row("b", 1)];
  poll(100, 2, nodes);
  expect(at(2)).toBe(110 + 5_050);
});

test("a server that is gone had its own time, until it was seen to be gone", () => {
  const { poll, at } = watching();
  const slow = row("a", 1, { obeyed: 1n, maxOfflineMs: 60_000 });
  poll(0, 1, [slow]);
  poll(100, 2, [slow]);
  poll(50_000, 2, []);
  // By the time of those that are left it would have stopped at 1,120.
  expect(at(2)).toBe(50_010);
  // What is changed later it did not have to hear of.
  poll(51_000, 3, [row("b", 1, { obeyed: 2n })]);
  poll(52_000, 3, [row("b", 1, { obeyed: 2n })]);
  expect(at(3)).toBe(51_010 + 1_010);
});

test("a server that goes on with another time in the same row had its own one before", () => {
  const { poll, at } = watching();
  poll(0, 1, [row("a", 1, { obeyed: 1n, maxOfflineMs: 60_000 })]);
  poll(100, 2, [row("a", 1, { obeyed: 1n, maxOfflineMs: 60_000 })]);
  poll(5_000, 2, [row("a", 2, { obeyed: 2n, maxOfflineMs: 1_000 })]);
  expect(at(2)).toBe(5_010);
});

test("while a server that never stops by itself is not heard of nothing is known", () => {
  const { poll, at, laggards } = watching();
  const endless = row("a", 1, { maxOfflineMs: undefined });
  poll(0, 2, [endless]);
  poll(1_000_000, 2, [endless]);
  expect([at(2), laggards(2)]).toEqual([undefined, [["a", undefined]]]);
  poll(1_000_100, 2, [row("a", 2, { maxOfflineMs: undefined, obeyed: 2n })]);
  expect(at(2)).toBe(1_000_110);
});

test("a row that is gone is not waited for", () => {
  const { poll, at } = watching();
  poll(0, 2, [row("a", 1)]);
  expect(at(2)).toBe(1_020);
  poll(100, 2, []);
  expect(at(2)).toBe(110);
});

test("a row of another history says nothing of this one", () => {
  const { poll, at, laggards } = watching();
  poll(0, 9, [row("a", 1, { obeyed: 9n })]);
  const incarnation = "two";
  poll(100, 5, [row("a", 2, { obeyed: 9n })], { incarnation });
  expect(laggards(5)).toHaveLength(1);
  poll(200, 5, [row("a", 3, { obeyed: 5n, incarnation })], { incarnation });
  expect(at(5)).toBe(210);
});

test("what was once so is never said otherwise, also when a server comes back that had stopped", () => {
  const { poll, at } = watching();
  const silent = row("a", 1, { obeyed: 1n });
  poll(0, 1, [silent]);
  poll(2_000, 2, [silent]);
  expect(at(2)).toBe(2_010);
  poll(2_100, 2, [row("a", 2, { obeyed: 1n })]);
  expect(at(2)).toBe(2_010);
});

test("without the rows a poll tells nothing of other servers", () => {
  const { poll, at } = watching();
  poll(0, 1, [row("a", 1, { obeyed: 1n })]);
  poll(100, 2, undefined);
  expect(at(2)).toBeUndefined();
});

test("a moment is over in a database when a later poll shows that all have heard of what was before", () => {
  const { state, poll } = watching();
  poll(0, 5, [row("a", 1, { obeyed: 5n })]);
  const since = (moment: number) => obedienceSince(state, "", moment, OWN).at;
  expect(since(50)).toBeUndefined();
  poll(60, 6, [row("a", 2, { obeyed: 5n })]);
  expect(obedienceSince(state, "", 50, OWN).laggards).toHaveLength(1);
  poll(160, 6, [row("a", 3, { obeyed: 6n })]);
  expect(since(50)).toBe(170);
});

/** The servers that count as alive. */
function aliveIn(state: ReturnType<typeof createNodeWatchState>): readonly string[] {
  return watchedNodes(state).flatMap(({ row: { id }, isAlive }) => (isAlive ? [id] : []));
}

test("a server counts as gone when its row stands still for ten seconds of answered polls", () => {
  const { state, poll } = watching();
  const offline = { maxOfflineMs: 1_000_000 };
  for (let at = 0; at <= 9_600; at += 800)
    poll(at, 1, [row("a", 7, offline), row("b", at, offline)]);
  expect(aliveIn(state)).toEqual(["a", "b"]);
  poll(10_400, 1, [row("a", 7, offline), row("b", 10_400, offline)]);
  expect(aliveIn(state)).toEqual(["b"]);
  // Once gone it stays gone over an outage, until it moves.
  poll(60_000, 1, [row("a", 7, offline), row("b", 10_400, offline)]);
  expect(aliveIn(state)).toEqual(["b"]);
  poll(60_800, 1, [row("a", 8, offline), row("b", 60_800, offline)]);
  expect(aliveIn(state)).toEqual(["a", "b"]);
});

test("an outage of the store says nothing of anybody, nor does a server that slept", () => {
  const { state, poll } = watching();
  const offline = { maxOfflineMs: 1_000_000 };
  const rows = [row("a", 7, offline), row("b", 7, offline)];
  poll(0, 1, rows);
  for (let at = 100_000; at < 110_000; at += 800) {
    poll(at, 1, rows);
    expect(aliveIn(state)).toEqual(["a", "b"]);
  }
  poll(110_400, 1, [row("a", 8, offline), row("b", 7, offline)]);
  expect(aliveIn(state)).toEqual(["a"]);
});

test("polls that bring no rows are answers too", () => {
  const { state, poll } = watching();
  const offline = { maxOfflineMs: 1_000_000 };
  poll(0, 1, [row("a", 7, offline)]);
  for (let at = 800; at < 16_000; at += 800) poll(at, 1, undefined);
  poll(16_000, 1, [row("a", 7, offline)]);
  expect(aliveIn(state)).toEqual([]);
});
