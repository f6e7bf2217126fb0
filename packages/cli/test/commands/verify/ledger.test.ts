import type { LedgerRow } from "@idmint/core/server";
import fc from "fast-check";
import { expect, test } from "vitest";
import { judgeLedger, verifyLedger } from "../../../src/commands/verify/ledger.ts";

const row = (
  entry: LedgerRow["entry"],
  firstId: number,
  lastId: number,
  version: number,
  more: Partial<LedgerRow> = {},
): LedgerRow => ({
  entry,
  tag: "orders",
  firstId: BigInt(firstId),
  lastId: BigInt(lastId),
  version: BigInt(version),
  epoch: 1n,
  nodeId: "n1",
  server: "s1",
  sequence: BigInt(version),
  instance: "",
  principal: "",
  atMs: 0,
  ...more,
});

interface Holding {
  readonly node: number;
  readonly first: number;
  last: number;
  /** Up to here it was handed to clients. */
  next: number;
  /** What clients hold, the newest last. */
  readonly allocations: { readonly first: number; last: number }[];
}

/** The ledger of a tag as servers write it that do what they must: each step takes one of them. */
function ledgerOf(steps: readonly { what: number; node: number; size: number }[]): LedgerRow[] {
  const rows: LedgerRow[] = [];
  const sequences = [0, 0, 0];
  const holdings: Holding[] = [];
  let [floor, version] = [0, 0];
  const write = (entry: LedgerRow["entry"], node: number, first: number, last: number): void => {
    const sequence = entry === "give-back" ? 0 : ++sequences[node]!;
    rows.push(row(entry, first, last, version, { nodeId: `n${node}`, sequence: BigInt(sequence) }));
  };
  for (const { what, node, size } of steps) {
    const mine = holdings.findLast((its) => its.node === node);
    const allocation = mine?.allocations.at(-1);
    if (what === 0 || mine === undefined) {
      version++;
      holdings.push({
        node,
        first: floor + 1,
        last: floor + size,
        next: floor + 1,
        allocations: [],
      });
      floor += size;
      write("grant", node, floor - size + 1, floor);
    } else if (what === 1 && mine.next <= mine.last) {
      const first = mine.next;
      mine.next = Math.min(mine.last + 1, first + size);
      mine.allocations.push({ first, last: mine.next - 1 });
      write("allocation", node, first, mine.next - 1);
    } else if (what === 2 && allocation !== undefined && allocation.last === mine.next - 1) {
      const first = Math.max(allocation.first, allocation.last - size + 1);
      write("release", node, first, allocation.last);
      mine.next = first;
      allocation.last = first - 1;
      if (allocation.last < allocation.first) mine.allocations.pop();
    } else if (what === 3 && mine.last === floor && mine.next <= mine.last) {
      version++;
      write("give-back", node, mine.next, mine.last);
      floor = mine.next - 1;
      mine.last = floor;
    }
  }
  return rows;
}

const STEPS = fc.array(
  fc.record({
    what: fc.constantFrom(0, 1, 1, 2, 3),
    node: fc.constantFrom(0, 1, 2),
    size: fc.integer({ min: 1, max: 8 }),
  }),
  { minLength: 1, maxLength: 60 },
);

test("servers that do what they must are never blamed, whichever rows are lost or there twice", () => {
  fc.assert(
    fc.property(STEPS, fc.infiniteStream(fc.nat(9)), (steps, dice) => {
      const all = ledgerOf(steps);
      const kept = all.flatMap((its) => {
        const roll = Number(dice.next().value);
        if (roll === 0) return [its, its];
        // A server that is killed takes such rows along.
        return roll < 3 && (its.entry === "grant" || its.entry === "allocation") ? [] : [its];
      });
      const shuffled = kept.toSorted(
        (a, b) => Number((a.firstId * 7n) % 5n) - Number((b.firstId * 7n) % 5n),
      );
      expect(judgeLedger(shuffled, 0n).faults).toEqual([]);
    }),
    { numRuns: 2_000 },
  );
});

test("an id that somebody still holds and that is granted or allocated again is found, with both rows", () => {
  let planted = 0;
  fc.assert(
    fc.property(STEPS, fc.nat(), (steps, pick) => {
      const all = ledgerOf(steps);
      const version = all.reduce((most, its) => (its.version > most ? its.version : most), 0n) + 1n;
      for (const entry of ["grant", "allocation"] as const) {
        const live = all.filter((its) => {
          const isGivenUp = all.some(
            ({ entry: what, firstId, lastId, version: at, sequence }) =>
              (what === "give-back" || (what === "release" && entry === "allocation")) &&
              firstId <= its.lastId &&
              lastId >= its.firstId &&
              (at > its.version || (at === its.version && sequence > its.sequence)),
          );
          return its.entry === entry && !isGivenUp;
        });
        const victim = live[pick % Math.max(1, live.length)];
        if (victim === undefined) continue;
        planted++;
        const twin = { ...victim, nodeId: "twin", server: "twin", version, sequence: 1n };
        const { faults } = judgeLedger([twin, ...all], 0n);
        expect(faults.map(({ rows }) => rows)).toContainEqual([victim, twin]);
        // What was forgotten proves nothing.
        expect(judgeLedger([twin, ...all], version - 1n).faults).toEqual([]);
      }
    }),
    { numRuns: 500 },
  );
  expect(planted).toBeGreaterThan(100);
});

test("a row that is stored while the ledger is read is seen by a second reading", async () => {
  const giveBack = row("give-back", 6, 10, 2, { sequence: 0n });
  const rows = [row("grant", 1, 10, 1), row("grant", 6, 20, 3)];
  let readings = 0;
  const store = {
    listLedger: async ({ after }: { after: unknown }) => {
      if (after === undefined) readings++;
      const seen = readings === 1 ? rows : [...rows, giveBack];
      const at = after === undefined ? 0 : 1;
      const next = at === 0 ? { database: "", position: 1n } : undefined;
      const page = at === 0 ? seen.slice(0, 1) : seen.slice(1);
      return { rows: page.map((its) => ({ ...its, position: 1n })), next };
    },
    findInLedger: async () => ({ rows: [], forgotten: 0n }),
  };
  const { faultCount, rows: count } = await verifyLedger(
    store,
    "orders",
    new AbortController().signal,
  );
  expect([faultCount, count, readings]).toEqual([0, 3, 2]);
});
