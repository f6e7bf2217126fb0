import { idsOf, type Segment, type Unused } from "@idmint/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { rangeToGiveBack, type Receipt } from "../../../src/service/issue/give-back.ts";

/** What may happen to a tag between the grants of one server. */
const step = fc.oneof(
  fc.record({ type: fc.constant("mine" as const), count: fc.integer({ min: 1, max: 20 }) }),
  fc.record({ type: fc.constant("others" as const), count: fc.integer({ min: 1, max: 20 }) }),
);

test("what is given back was granted here and never issued, and reaches the floor of the newest grant", () => {
  fc.assert(
    fc.property(
      fc.array(step, { minLength: 1, maxLength: 8 }),
      fc.nat({ max: 100 }),
      fc.nat({ max: 3 }),
      (steps, issuedShare, putBack) => {
        let floor = 0n;
        let version = 0n;
        const grants: { receipt: Receipt; segment: Segment }[] = [];
        for (const { type, count } of steps) {
          const base = floor + 1n;
          floor += BigInt(count);
          version += 1n;
          const segment = { base, increment: 1, count };
          if (type === "mine") grants.push({ receipt: { version, last: floor }, segment });
        }
        // The oldest ids were issued; some of the issued ones came back in between.
        const mine = [...idsOf(grants.map((grant) => grant.segment))];
        const issued = new Set(mine.slice(0, Math.floor((mine.length * issuedShare) / 100)));
        const unused: Unused<Receipt>[] = [];
        for (const { receipt, segment } of grants) {
          const ids = [...idsOf([segment])].filter((id) => !issued.has(id));
          const [base] = ids;
          if (base === undefined) continue;
          const whole = { base, increment: 1, count: ids.length };
          const at = Math.min(putBack, whole.count - 1);
          const parts =
            at === 0
              ? [whole]
              : [
                  { ...whole, count: at },
                  { base: base + BigInt(at), increment: 1, count: whole.count - at },
                ];
          unused.push({ receipt, segments: parts });
        }
        const range = rangeToGiveBack("t", unused);
        const newest = unused.at(-1)?.receipt;
        if (newest === undefined) {
          expect(range).toBeUndefined();
          return;
        }
        expect(range).toMatchObject({ tag: "t", to: newest.last, version: newest.version });
        if (range === undefined) return;
        const own = new Set(mine);
        for (let id = range.from; id <= range.to; id++) {
          expect(own).toContain(id);
          expect(issued).not.toContain(id);
        }
        // Nothing that could go back with it stays out.
        const below = range.from - 1n;
        expect(own.has(below) && !issued.has(below)).toBe(false);
      },
    ),
  );
});

test("when the end of the newest grant was issued, nothing is given back", () => {
  const unused = [
    { receipt: { version: 1n, last: 10n }, segments: [{ base: 5n, increment: 1, count: 6 }] },
    { receipt: { version: 2n, last: 20n }, segments: [{ base: 11n, increment: 1, count: 5 }] },
  ];
  expect(rangeToGiveBack("t", unused)).toBeUndefined();
});
