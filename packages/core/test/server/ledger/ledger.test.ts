import fc from "fast-check";
import { expect, test } from "vitest";
import { segmentOf } from "../../../src/segment/segment.ts";
import { holderOf } from "../../../src/server/ledger/holder.ts";
import {
  batchFailed,
  batchStored,
  createLedgerState,
  type LedgerEvent,
  type LedgerState,
  nextBatch,
  note,
} from "../../../src/server/ledger/ledger-state.ts";
import { type LedgerRow, MAX_LEDGER_BATCH } from "../../../src/server/store/ledger.ts";

const EVENT: LedgerEvent = {
  entry: "allocation",
  tag: "t",
  segment: segmentOf(1n, 10),
  version: 1n,
  epoch: 1n,
  instance: "orders/7f",
  principal: "",
  atMs: 5,
};

const ROW: LedgerRow = {
  ...EVENT,
  firstId: 1n,
  lastId: 10n,
  nodeId: "n1",
  server: "host-1",
  sequence: 1n,
};

function stateOf(maxQueued: number): LedgerState {
  return createLedgerState({ maxQueued, nodeId: "n1", server: "host-1", count: { last: 0n } });
}

test("rows go out in their order, one batch at a time, and again until they are stored", () => {
  const state = stateOf(5_000);
  for (let at = 0; at < MAX_LEDGER_BATCH + 5; at++) note(state, EVENT);
  const first = nextBatch(state, 9);
  expect(first).toHaveLength(MAX_LEDGER_BATCH);
  expect(first[0]).toMatchObject({ entry: "allocation", firstId: 1n, lastId: 10n, sequence: 1n });
  expect(nextBatch(state, 9)).toEqual([]);
  batchFailed(state);
  expect(nextBatch(state, 9)).toEqual(first);
  batchStored(state);
  const rest = nextBatch(state, 9);
  expect(rest.map(({ sequence }) => Number(sequence))).toEqual(
    [1, 2, 3, 4, 5].map((at) => MAX_LEDGER_BATCH + at),
  );
  batchStored(state);
  expect(nextBatch(state, 9)).toEqual([]);
});

test("what there is no room for is counted, and a row says where it is missing", () => {
  const state = stateOf(2);
  expect([EVENT, EVENT, EVENT].map((event) => note(state, event))).toEqual([true, true, false]);
  note(state, { ...EVENT, segment: segmentOf(50n, 10), version: 4n });
  note(state, { ...EVENT, tag: "u", segment: segmentOf(7n, 1) });
  expect(state.dropped).toBe(3);
  // A release is refused, and says nothing.
  expect(note(state, { ...EVENT, entry: "release" })).toBe(false);
  expect(state.dropped).toBe(3);
  expect(nextBatch(state, 9)).toHaveLength(2);
  batchStored(state);
  expect(nextBatch(state, 9)).toMatchObject([
    { entry: "gap", tag: "t", firstId: 1n, lastId: 59n, version: 4n, instance: "", atMs: 9 },
    { entry: "gap", tag: "u", firstId: 7n, lastId: 7n },
  ]);
});

function row(more: Partial<LedgerRow>): LedgerRow {
  return { ...ROW, ...more };
}

function why(...rows: readonly LedgerRow[]): string {
  return holderOf({ rows, forgotten: 0n }).why;
}

test("of rows about an id the one with the highest version and sequence counts", () => {
  const grant = row({ entry: "grant", instance: "" });
  expect(why()).toBe("UNKNOWN");
  expect(why(grant)).toBe("GRANTED");
  expect(why(grant, row({ sequence: 2n }))).toBe("ALLOCATED");
  const released = [grant, row({ sequence: 2n }), row({ entry: "release", sequence: 3n })];
  expect(why(...released)).toBe("RELEASED");
  expect(why(...released, row({ sequence: 4n }))).toBe("ALLOCATED");
  expect(why(...released, row({ entry: "give-back", version: 2n, sequence: 0n }))).toBe(
    "GIVEN_BACK",
  );
  expect(why(grant, row({ entry: "gap", version: 3n }))).toBe("LOST");
  expect(why(grant, row({ entry: "grant", nodeId: "n2" }))).toBe("CONTRADICTION");
  expect(holderOf({ rows: released, forgotten: 1n }).why).toBe("FORGOTTEN");
  const { server, client } = holderOf({ rows: [row({ sequence: 2n }), grant], forgotten: 0n });
  expect([server, client]).toEqual([grant, row({ sequence: 2n })]);
});

test("whoever is told of an id is told whatever the order of its rows is", () => {
  const rows = fc.array(
    fc.record({
      entry: fc.constantFrom("allocation", "gap", "give-back", "grant", "release"),
      version: fc.bigInt({ min: 1n, max: 4n }),
      sequence: fc.bigInt({ min: 0n, max: 5n }),
      nodeId: fc.constantFrom("n1", "n2"),
    }),
    { maxLength: 6 },
  );
  fc.assert(
    fc.property(rows, fc.bigInt({ min: 0n, max: 4n }), (some, forgotten) => {
      const all = some.map((more): LedgerRow => ({ ...ROW, ...more }));
      // Rows of one version and sequence are the same row, written twice.
      const unique = new Map(
        all.map((row) => [`${row.version}:${row.sequence}:${row.nodeId}`, row]),
      );
      const kept = [...unique.values()];
      const one = holderOf({ rows: kept, forgotten });
      expect(holderOf({ rows: kept.toReversed(), forgotten }).why).toBe(one.why);
      const told = one.client ?? one.server;
      if (told !== undefined) expect(told.version).toBeGreaterThan(forgotten);
    }),
  );
});
