import fc from "fast-check";
import { expect, test } from "vitest";
import type { HistoryRow } from "../../nemesis/callers/config.ts";
import { OrderCheck } from "../../nemesis/judge/order.ts";

const calls = fc.array(
  fc.record({
    from: fc.integer({ min: 0, max: 40 }),
    took: fc.integer({ min: 1, max: 20 }),
    id: fc.integer({ min: 1, max: 30 }),
    count: fc.integer({ min: 1, max: 3 }),
    period: fc.constantFrom("", "2026-11-21", "2026-11-22"),
  }),
  { maxLength: 12 },
);

interface Call {
  readonly from: number;
  readonly to: number;
  readonly row: HistoryRow;
  readonly first: number;
  readonly last: number;
}

function callOf({
  from,
  took,
  id,
  count,
  period,
}: Record<"count" | "from" | "id" | "took", number> & { period: string }): Call {
  const to = from + took;
  const segments = [{ base: String(id), count, increment: "1" }];
  const row = { tag: "bills", who: "a", time: "", from, to, period, segments };
  return { from, to, row, first: id, last: id + count - 1 };
}

/** Whether one is, by period and id, not wholly above the other. */
function isNotAbove(after: Call, before: Call): boolean {
  const [a = "", b = ""] = [after.row.period, before.row.period];
  return a < b || (a === b && after.first <= before.last);
}

test("an answer is out of order exactly when one that is not below it had come before it was asked for", () => {
  fc.assert(
    fc.property(calls, (given) => {
      const all = given.map(callOf).toSorted((a, b) => a.to - b.to);
      const check = new OrderCheck();
      const found = all.filter(({ row }) => check.add(row) !== undefined);
      const wrong = all.filter((after) =>
        all.some((before) => before.to < after.from && isNotAbove(after, before)),
      );
      expect(found).toEqual(wrong);
    }),
  );
});
