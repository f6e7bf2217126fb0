import fc from "fast-check";
import { expect, test } from "vitest";
import {
  createNewcomerState,
  type EarlierLife,
  isProvedIn,
  isWaiting,
  newcomerSaw,
} from "../../../src/server/node/newcomer-state.ts";
import type { NodeRow } from "../../../src/server/node/ports.ts";
import { NEVER_STOPPED } from "../../../src/server/store/issuing.ts";
import { nodeRow } from "./node-row.ts";

const OWN = { id: "own", instance: "own", address: "10.0.0.1:1" };
const W = 12_000;

function row(id: string, renewals: number, isProved = true, more: Partial<NodeRow> = {}): NodeRow {
  return nodeRow(id, renewals, { address: `${id}:1`, isProved, ...more });
}

function newcomer(patienceMs = W) {
  const state = createNewcomerState(patienceMs);
  const sees = (
    now: number,
    nodes: readonly NodeRow[] | undefined,
    isRenewed = true,
    sentAt = now,
  ): boolean => {
    const part = { name: "", incarnation: "one", revision: 1n, isRenewed, nodes };
    newcomerSaw(state, { ...part, traffic: [], issuing: NEVER_STOPPED }, OWN, { sentAt, now });
    return isProvedIn(state, "");
  };
  return { state, sees };
}

test("alone in a store it waits for nothing", () => {
  expect(newcomer().sees(0, [])).toBe(true);
  expect(newcomer().sees(0, [row("own", 1)])).toBe(true);
});

test("an earlier life of its own, and other newcomers, are nobody to wait for", () => {
  const earlier = row("old", 9, true, { instance: "own", address: "10.0.0.1:1" });
  expect(newcomer().sees(0, [earlier, row("new", 3, false)])).toBe(true);
});

test("a proved row has to move, and an unproved one says nothing", () => {
  const { sees } = newcomer();
  expect(sees(0, [row("a", 5), row("new", 1, false)])).toBe(false);
  expect(sees(1_000, [row("a", 5), row("new", 2, false)])).toBe(false);
  expect(sees(2_000, [row("a", 6)])).toBe(true);
  // What is proved stays so.
  expect(sees(3_000, [row("b", 6)])).toBe(true);
});

test("rows that stand still are believed when their time is over, and none when they are gone", () => {
  const still = newcomer();
  expect(still.sees(0, [row("a", 5)])).toBe(false);
  expect(still.sees(W - 1, [row("a", 5)])).toBe(false);
  expect(isWaiting(still.state)).toBe(true);
  expect(still.sees(W, [row("a", 5)])).toBe(true);
  expect(isWaiting(still.state)).toBe(false);
  const gone = newcomer();
  expect(gone.sees(0, [row("a", 5)])).toBe(false);
  expect(gone.sees(10, [])).toBe(true);
});

test("an answer that is read late says nothing of the time since it was sent", () => {
  const { sees } = newcomer();
  expect(sees(10, [row("a", 5)], true, 0)).toBe(false);
  // The process was stopped: those who knew more may have marked the store since.
  expect(sees(W * 5, [row("a", 5)], true, 1_000)).toBe(false);
  expect(sees(W * 5 + 1, [row("a", 5)], true, W + 9)).toBe(false);
  expect(sees(W * 5 + 2, [row("a", 5)], true, W + 10)).toBe(true);
});

test("a store that renews nothing proves nothing, however long", () => {
  const { sees } = newcomer();
  expect(sees(0, [], false)).toBe(false);
  expect(sees(W * 2, [row("a", 5)], false)).toBe(false);
  expect(sees(W * 2, undefined)).toBe(false);
  // Its time begins with the first look that counts.
  expect(sees(W * 2, [row("a", 5)])).toBe(false);
  expect(sees(W * 3 - 1, [row("a", 5)])).toBe(false);
});

test("processes behind its own address are heard soon, or have ended with it", () => {
  const near = row("old", 9, true, { instance: "own#2", address: "10.0.0.1:1" });
  const { sees } = newcomer();
  expect(sees(0, [near])).toBe(false);
  expect(sees(2_999, [near])).toBe(false);
  expect(sees(3_000, [near])).toBe(true);
  const both = newcomer();
  expect(both.sees(0, [near, row("a", 5)])).toBe(false);
  expect(both.sees(3_000, [near, row("a", 5)])).toBe(false);
  expect(both.sees(3_500, [{ ...near, renewals: 10n }, row("a", 5)])).toBe(true);
});

test("a server that tells no address has no earlier life to be known by", () => {
  const state = createNewcomerState(W);
  const nodes = [row("old", 9, true, { instance: "own", address: "" })];
  const part = { name: "", incarnation: "one", revision: 1n, isRenewed: true, nodes };
  newcomerSaw(
    state,
    { ...part, traffic: [], issuing: NEVER_STOPPED },
    { ...OWN, address: "" },
    { sentAt: 0, now: 0 },
  );
  expect(isProvedIn(state, "")).toBe(false);
});

test("without patience it waits for nobody", () => {
  expect(newcomer(0).sees(0, [row("a", 5)])).toBe(true);
});

test("no newcomer is proved by newcomers alone while a proved row stands still", () => {
  const look = fc.record({ others: fc.nat(3), afterMs: fc.integer({ min: 1, max: 3_000 }) });
  fc.assert(
    fc.property(fc.array(look, { minLength: 1, maxLength: 12 }), (looks) => {
      const { sees } = newcomer();
      let now = 0;
      sees(now, [row("a", 5)]);
      for (const { others, afterMs } of looks) {
        now += afterMs;
        const unproved = Array.from({ length: others }, (_, at) => row(`n${at}`, now, false));
        expect(sees(now, [row("a", 5), ...unproved])).toBe(now >= W);
        if (now >= W) return;
      }
    }),
  );
});

test("a server that runs again goes on by its own row, unless it was away for longer than a slow poll", () => {
  const sees = (earlier: EarlierLife, ...looks: readonly [number, boolean][]): boolean[] => {
    const state = createNewcomerState(W, earlier);
    return looks.map(([now, hasEarlier]) => {
      const part = { name: "", incarnation: "one", revision: 1n, isRenewed: true, hasEarlier };
      const nodes = [row("a", 5)];
      const said = { ...part, nodes, traffic: [], issuing: NEVER_STOPPED };
      newcomerSaw(state, said, OWN, { sentAt: now, now });
      return isProvedIn(state, "");
    });
  };
  const renewedAt = new Map([["", 1_000]]);
  const earlier = { renewedAt, isWhole: true };
  // The second poll compares what was granted since.
  expect(sees(earlier, [4_000, true], [4_800, true])).toEqual([false, true]);
  // A store that does not have the row says nothing, and neither does one that lost it meanwhile.
  expect(sees(earlier, [4_000, true], [4_800, false])).toEqual([false, false]);
  expect(sees(earlier, [4_000, false], [4_800, false])).toEqual([false, false]);
  const late = 1_000 + W / 2;
  expect(sees(earlier, [4_000, true], [late - 1, true])).toEqual([false, true]);
  expect(sees(earlier, [4_000, true], [late, true])).toEqual([false, false]);
  // With more tags than one poll compares.
  expect(sees({ renewedAt, isWhole: false }, [4_000, true], [4_800, true])).toEqual([false, false]);
  // Of this database no renewal is known.
  const other = { renewedAt: new Map([["b", 1_000]]), isWhole: true };
  expect(sees(other, [4_000, true], [4_800, true])).toEqual([false, false]);
});
