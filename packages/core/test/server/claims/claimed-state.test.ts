import fc from "fast-check";
import { expect, test } from "vitest";
import { lostTag, withClaims } from "../../../src/server/claims/claimed-state.ts";
import { FORGOTTEN, type Tag } from "../../../src/server/tag/tag.ts";

const base = lostTag("t", [], false, 0);

function plain(floor: bigint, ceiling = 1_000n): Tag {
  return { ...base, floor, ceiling };
}

function daily(periodStart: string, floor: bigint, others: Tag["otherPeriods"] = []): Tag {
  const periods = { unit: "DAY", timeZone: "UTC", keepForMs: 1 } as const;
  return {
    ...plain(floor),
    kind: { kind: "sequence", start: 1n, periods, redis: undefined },
    periodStart,
    ...(others.length === 0 ? {} : { otherPeriods: others }),
  };
}

test("a floor is never below a claim of its period, and never falls", () => {
  const claim = fc.record({
    tag: fc.constant("t"),
    period: fc.constant(""),
    last: fc.bigInt(1n, 999n),
  });
  fc.assert(
    fc.property(fc.bigInt(0n, 1_000n), fc.array(claim, { maxLength: 4 }), (floor, claims) => {
      const { row, missing } = withClaims(plain(floor), claims, false);
      expect(row.floor).toBeGreaterThanOrEqual(floor);
      for (const { last } of claims) expect(row.floor).toBeGreaterThanOrEqual(last);
      expect([floor, ...claims.map(({ last }) => last)]).toContain(row.floor);
      expect(missing).toBe(row.floor - floor);
    }),
  );
});

test("claims of periods count for theirs: over ones for nothing, coming ones above what was known", () => {
  const row = daily("2026-03-02", 10n, [
    { start: "2026-03-03", lastId: 5n },
    { start: "2026-03-01", lastId: FORGOTTEN },
  ]);
  const claims = [
    { tag: "t", period: "2026-03-01", last: 900n },
    { tag: "t", period: "2026-03-02", last: 20n },
    { tag: "t", period: "2026-03-03", last: 4n },
    { tag: "t", period: "2026-03-04", last: 7n },
  ];
  const claimed = withClaims(row, claims, false);
  expect(claimed.missing).toBe(10n);
  expect(claimed.row).toMatchObject({
    floor: 20n,
    otherPeriods: [
      { start: "2026-03-04", lastId: 7n },
      { start: "2026-03-03", lastId: 5n },
      { start: "2026-03-01", lastId: FORGOTTEN },
    ],
  });
});

test("of a tag without periods every claim of its name counts, and the latest period is kept", () => {
  const claims = [
    { tag: "t", period: "2026-03-01", last: 90n },
    { tag: "t", period: "2026-03-02", last: 20n },
    { tag: "t", period: "", last: 7n },
  ];
  const { row } = withClaims(plain(5n), claims, false);
  const latest = [{ start: "2026-03-02", lastId: FORGOTTEN }];
  expect(row).toMatchObject({ floor: 90n, otherPeriods: latest });
  // A second accept, of servers that the first did not hear.
  const claimed = (period: string) =>
    withClaims(row, [{ tag: "t", period, last: 1n }], false).row.otherPeriods;
  expect(claimed("2026-03-01")).toEqual(latest);
  expect(claimed("2026-03-03")).toEqual([{ start: "2026-03-03", lastId: FORGOTTEN }]);
  const later = { ...plain(5n), periodStart: "2026-03-02" };
  expect(withClaims(later, claims, false).row.otherPeriods).toBe(undefined);
});

test("a claim that reaches the end is refused, with the tag's name, unless it is trusted", () => {
  const claims = [{ tag: "t", period: "", last: 5_000n }];
  expect(() => withClaims(plain(5n), claims, false)).toThrow(/"t" .*--trust-claims/u);
  expect(withClaims(plain(5n), claims, true).row.floor).toBe(1_000n);
  expect(
    withClaims(plain(1_000n), [{ ...claims[0], tag: "t", period: "", last: 1_000n }], false)
      .missing,
  ).toBe(0n);
});

test("a lost name becomes a deleted tag at the highest of its claims", () => {
  const claims = [
    { tag: "x", period: "2026-03-01", last: 90n },
    { tag: "x", period: "2026-02-01", last: 400n },
  ];
  expect(lostTag("x", claims, false, 7)).toMatchObject({
    name: "x",
    state: "DELETED",
    floor: 400n,
    periodStart: "",
    otherPeriods: [{ start: "2026-03-01", lastId: FORGOTTEN }],
    createdAtMs: 7,
  });
});
