import { reconcile, type Slot, type SlotsView } from "@idmint/core/server";
import { holdingsOf } from "../../../src/server/ticket/holdings.ts";
import { expect, test } from "vitest";

type SlotRow = readonly [
  slot: number,
  state: Slot["state"],
  epoch: bigint,
  owner: string,
  lastId?: bigint,
];

function view(name: string, ...rows: readonly SlotRow[]): SlotsView {
  const slots = rows.map(([slot, state, epoch, owner, lastId = 0n]) => {
    return { slot, state, epoch, owner: `${owner}.0`, lastId };
  });
  return { databaseId: `${name}.0`, incarnation: "1", slotCount: 9, slots };
}

function holdings(...views: readonly SlotsView[]): ReturnType<typeof holdingsOf> {
  return holdingsOf(new Map(views.map((each) => [each.databaseId.slice(0, -2), each])));
}

test("the newest epoch owns a slot, and who is active under an older one went back", () => {
  const { owners, behind, pending, highest } = holdings(
    view("a", [0, "active", 1n, "a", 7n], [1, "moved", 2n, "b"]),
    view("b", [0, "active", 2n, "b", 9n], [1, "active", 2n, "b"]),
  );
  expect([...owners]).toEqual([
    [0, "b"],
    [1, "b"],
  ]);
  expect([...behind]).toEqual([["a", "it has slot 0 under epoch 1, after epoch 2"]]);
  expect([pending, highest]).toEqual([[], 9n]);
});

test("a frozen slot waits for its new owner until that has it", () => {
  const frozen = view("a", [3, "frozen", 2n, "b", 30n]);
  const before = holdings(frozen, view("b", [3, "moved", 1n, "a"]));
  expect(before.pending).toEqual([{ slot: 3, from: "a", to: "b.0", epoch: 2n, lastId: 30n }]);
  expect([before.owners.size, before.behind.size]).toEqual([0, 0]);
  const after = holdings(frozen, view("b", [3, "active", 2n, "b"]));
  expect([after.pending, [...after.owners]]).toEqual([[], [[3, "b"]]]);
});

test("who has not what another one knows it took went back; one that was not asked did not", () => {
  const moved = view("a", [3, "moved", 2n, "b"]);
  expect([...holdings(moved, view("b")).behind]).toEqual([
    ["b", "it has lost slot 3, which a gave it"],
  ]);
  expect(holdings(moved).behind.size).toBe(0);
});

test("a database that went back learns what it gave away and what it was given", () => {
  const others = [
    // Slot 0 was taken over from b. Slot 1 too, and is on its way to c. Slot 2 was given to b.
    view("a", [0, "active", 2n, "a", 90n], [1, "frozen", 3n, "c", 55n], [2, "moved", 2n, "b", 8n]),
    view("c"),
  ];
  const own = view("b", [0, "active", 1n, "b"], [1, "active", 1n, "b"], [4, "active", 1n, "b"]);
  expect(reconcile("t.1", "b.0", [own, ...others])).toEqual({
    slotsId: "t.1",
    slotCount: 9,
    highest: 90n,
    gone: [
      { slot: 0, owner: "a.0", epoch: 1n },
      { slot: 1, owner: "c.0", epoch: 2n },
    ],
    given: [{ slot: 2, epoch: 2n }],
  });
  // Once it knows, nobody is in doubt, and the move under way can end.
  const mended = view(
    "b",
    [0, "moved", 1n, "a"],
    [1, "moved", 2n, "c"],
    [2, "active", 1_700_000_000n, "b"],
    [4, "active", 1_700_000_000n, "b"],
  );
  const { behind, owners, pending } = holdings(mended, ...others);
  expect([...behind]).toEqual([]);
  expect([...owners]).toEqual([
    [0, "a"],
    [2, "b"],
    [4, "b"],
  ]);
  expect(pending.map(({ slot, to }) => [slot, to])).toEqual([[1, "c.0"]]);
});
