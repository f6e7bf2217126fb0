// The decision to go back to a period, on one row. What it means in a store is in the suite of stores.
import type { Tag } from "@idmint/core/server";
import { sequenceOf } from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import { returnedTag } from "../../../src/store/shared/change.ts";
import { acceptedPeriods, turnOf } from "../../../src/store/shared/period.ts";

const STAMP = { revision: 7n, nowMs: 1_000 };
const ROW: Tag = {
  ...sequenceOf("t", {
    ceiling: 100n,
    periods: { unit: "DAY", timeZone: "UTC", keepForMs: 86_400_000 },
  }),
  state: "ACTIVE",
  floor: 5n,
  periodStart: "2037-12-31",
  otherPeriods: [{ start: "2026-11-22", lastId: 40n }],
  generation: 0n,
  version: 9n,
  epoch: 3n,
  revision: 2n,
  createdAtMs: 0,
  updatedAtMs: 0,
};

function back(start: string, floor?: bigint, row: Tag = ROW) {
  return returnedTag("t", row, { start, floor }, undefined, STAMP);
}

test("a tag goes back above the last id that the row knows, under a new epoch and version", () => {
  expect(back("2026-11-22")).toMatchObject({
    changed: true,
    tag: { periodStart: "2026-11-22", floor: 40n, version: 10n, epoch: 4n, revision: 7n },
  });
  expect(back("2026-11-22", 50n).tag.floor).toBe(50n);
  expect(() => back("2026-11-22", 39n)).toThrow("floor must be 40");
});

test("where the row knows no last id, nobody guesses one", () => {
  expect(() => back("2026-11-23")).toThrow("floor is required");
  expect(back("2026-11-23", 0n).tag.floor).toBe(0n);
});

test("the period that is left begins again above its own ids", () => {
  const { tag } = back("2026-11-22");
  const { periodStart, floor, otherPeriods = [] } = tag;
  const position = { start: periodStart, floor, others: otherPeriods };
  expect(turnOf(position, "2037-12-30")).toMatchObject({ floor: 0n, hasEnded: true });
  expect(turnOf(position, "2037-12-31")).toMatchObject({ floor: 5n, hasEnded: true });
});

test("an accept keeps only periods that are yet to come, above the gap", () => {
  const others = [
    { start: "2037-12-31", lastId: 5n },
    { start: "2037-12-30", lastId: 95n },
    { start: "2026-11-20", lastId: 3n },
  ];
  expect(acceptedPeriods({ start: "2026-11-22", floor: 1n, others }, 10n, 100n)).toEqual([
    { start: "2037-12-31", lastId: 15n },
    { start: "2037-12-30", lastId: 100n },
    { start: "2026-11-21", lastId: -1n },
  ]);
});

test("what an accept forgot is gone back over one period at a time, each with its last id", () => {
  const periodStart = "2026-11-22";
  const otherPeriods = acceptedPeriods({ start: periodStart, floor: 5n, others: [] }, 10n, 100n);
  const row = { ...ROW, periodStart, otherPeriods };
  expect(() => back("2026-11-20", 0n, row)).toThrow("period must be 2026-11-21 or later");
  expect(() => back("2026-11-21", undefined, row)).toThrow("floor is required");
  const { tag } = back("2026-11-21", 40n, row);
  expect(tag).toMatchObject({ floor: 40n });
  expect(tag.otherPeriods).toEqual([
    { start: "2026-11-22", lastId: 5n },
    { start: "2026-11-20", lastId: -1n },
  ]);
  const further = back("2026-11-20", 3n, tag).tag;
  const position = {
    start: further.periodStart,
    floor: further.floor,
    others: further.otherPeriods ?? [],
  };
  expect(turnOf(position, "2026-11-21")).toMatchObject({ floor: 40n });
});

test("a week that an accept forgot is told by its Monday", () => {
  const kind = { unit: "WEEK", timeZone: "UTC", keepForMs: 86_400_000 } as const;
  const periodStart = "2026-11-16";
  const otherPeriods = acceptedPeriods({ start: periodStart, floor: 5n, others: [] }, 10n, 100n);
  const row = { ...ROW, ...sequenceOf("t", { periods: kind }), periodStart, otherPeriods };
  expect(() => back("2026-11-02", 0n, row)).toThrow("period must be 2026-11-09 or later");
  expect(back("2026-11-09", 7n, row).tag).toMatchObject({
    floor: 7n,
    otherPeriods: [
      { start: "2026-11-16", lastId: 5n },
      { start: "2026-11-08", lastId: -1n },
    ],
  });
});
