import { countOf, idsOf, lastOf, MAX_ID, segmentOf, slice } from "@idmint/core";
import { VersionGuard } from "@idmint/core/server";
import { idAt } from "../src/segment/segment.ts";
import fc from "fast-check";
import { expect, test } from "vitest";

const segments = fc
  .record({
    base: fc.bigInt({ min: 0n, max: MAX_ID - 1_000_000n }),
    increment: fc.integer({ min: 1, max: 1_000 }),
    count: fc.integer({ min: 1, max: 500 }),
  })
  .map(({ base, increment, count }) => segmentOf(base, count, increment));

test("a segment is its base and count − 1 steps of its increment, exactly", () => {
  fc.assert(
    fc.property(segments, (segment) => {
      const ids = [...idsOf([segment])];
      expect(ids).toHaveLength(segment.count);
      expect(ids[0]).toBe(segment.base);
      expect(ids.at(-1)).toBe(lastOf(segment));
      for (let i = 1; i < ids.length; i++)
        expect((ids[i] ?? 0n) - (ids[i - 1] ?? 0n)).toBe(BigInt(segment.increment));
    }),
  );
});

test("slices next to each other are the whole", () => {
  fc.assert(
    fc.property(segments, fc.nat(), (segment, at) => {
      const cut = at % segment.count;
      const parts =
        cut === 0 ? [segment] : [slice(segment, 0, cut), slice(segment, cut, segment.count - cut)];
      expect(countOf(parts)).toBe(segment.count);
      expect([...idsOf(parts)]).toEqual([...idsOf([segment])]);
    }),
  );
});

test("ids reach 2^63 − 1 exactly, and no segment reaches beyond", () => {
  expect(lastOf(segmentOf(MAX_ID - 9n, 10))).toBe(MAX_ID);
  expect(idAt(segmentOf(MAX_ID - 9n, 10), 3)).toBe(MAX_ID - 6n);
  expect(() => segmentOf(MAX_ID - 8n, 10)).toThrow(RangeError);
  expect(() => segmentOf(-1n, 1)).toThrow(RangeError);
  expect(() => segmentOf(1n, 0)).toThrow(RangeError);
  expect(() => segmentOf(1n, 1, 0)).toThrow(RangeError);
  expect(() => segmentOf(1n, 1.5)).toThrow(RangeError);
});

const at = (version: bigint, epoch = 1n) => ({ version, epoch });

test("the version guard takes answers that overtake each other for what they are", () => {
  const guard = new VersionGuard();
  const [first, second] = [guard.seen("t"), guard.seen("t")];
  expect(guard.admitGrant("t", second, at(2n))).toBe(true);
  expect(guard.admitGrant("t", first, at(1n))).toBe(true);
  expect(guard.seen("t")).toBe(2n);
});

test("the version guard refuses a grant whose version is not above what had been seen", () => {
  const guard = new VersionGuard();
  guard.observe("t", at(7n));
  expect(guard.admitGrant("t", guard.seen("t"), at(7n))).toBe(false);
  expect(guard.admitGrant("t", guard.seen("t"), at(3n))).toBe(false);
  expect(guard.admitGrant("t", guard.seen("t"), at(8n))).toBe(true);
  guard.startHistory();
  expect(guard.admitGrant("t", guard.seen("t"), at(1n, 2n))).toBe(true);
});

test("the version guard remembers a grant of a history that was heard of only later", () => {
  const guard = new VersionGuard();
  guard.observe("t", at(7n));
  expect(guard.admitGrant("t", guard.seen("t"), at(8n, 2n))).toBe(true);
  guard.startHistory();
  // The row went back below that grant, and what it grants now was granted before.
  expect(guard.admitGrant("t", guard.seen("t"), at(8n, 2n))).toBe(false);
  expect(guard.seen("t")).toBe(8n);
  expect(guard.admitGrant("t", guard.seen("t"), at(9n, 2n))).toBe(true);
});

test("the version guard holds a row of a history that was heard of only later to what it had granted", () => {
  const guard = new VersionGuard();
  guard.observe("t", at(8n, 2n));
  guard.startHistory();
  guard.observe("t", at(5n, 2n));
  expect(guard.seen("t")).toBe(8n);
  guard.startHistory();
  guard.observe("t", at(5n, 3n));
  expect(guard.seen("t")).toBe(5n);
});

const ids = (first: bigint, count: number, epoch = 1n, period = "") => {
  return { first, last: first + BigInt(count) - 1n, epoch, period };
};

test("the version guard refuses ids granted here before, though the version has risen again", () => {
  const guard = new VersionGuard();
  expect(guard.admitIds("t", ids(6n, 20))).toBe("new");
  expect(guard.admitIds("t", ids(25n, 5))).toBe("again");
  expect(guard.admitIds("t", ids(26n, 5))).toBe("new");
  guard.startHistory();
  expect(guard.admitIds("t", ids(30n, 5))).toBe("again");
});

test("the version guard refuses ids granted here before an accept, whatever their epoch", () => {
  const guard = new VersionGuard();
  expect(guard.admitIds("t", ids(1n, 100, 5n))).toBe("new");
  guard.startHistory();
  expect(guard.admitIds("t", ids(100n, 5, 9n))).toBe("below");
  expect(guard.admitIds("t", ids(11n, 5, 4n))).toBe("below");
  expect(guard.highest("t", "")).toEqual({ period: "", epoch: 5n, last: 100n });
  expect(guard.admitIds("t", ids(101n, 5, 10n))).toBe("new");
});

test("the version guard compares ids within their period, also when one comes again", () => {
  const guard = new VersionGuard();
  expect(guard.admitIds("t", ids(1n, 100, 1n, "2026-01-01"))).toBe("new");
  expect(guard.admitIds("t", ids(1n, 5, 1n, "2026-01-02"))).toBe("new");
  expect(guard.admitIds("t", ids(5n, 5, 1n, "2026-01-02"))).toBe("again");
  expect(guard.admitIds("t", ids(100n, 5, 2n, "2026-01-01"))).toBe("below");
  expect(guard.admitIds("t", ids(101n, 5, 2n, "2026-01-01"))).toBe("new");
  expect(guard.admitIds("t", ids(5n, 1, 2n, "2026-01-02"))).toBe("below");
  expect(guard.highest("t", "2026-01-01")?.last).toBe(105n);
  expect(guard.highest("t", "2026-01-02")?.last).toBe(5n);
  expect(guard.highest("t", "2026-01-03")).toBeUndefined();
});

test("the version guard lets ids that were given back be granted again, and no others", () => {
  const guard = new VersionGuard();
  expect(guard.admitIds("t", ids(1n, 10))).toBe("new");
  guard.giveBack("t", { from: 4n, to: 10n });
  guard.giveBack("t", { from: 8n, to: 10n });
  expect(guard.admitIds("t", ids(3n, 5))).toBe("again");
  expect(guard.admitIds("t", ids(4n, 5))).toBe("new");
});

test("the version guard's watch goes round all tags", () => {
  const guard = new VersionGuard();
  for (let i = 0; i < 25; i++) guard.observe(`t${i}`, at(BigInt(i + 1)));
  const cursor = { after: 0 };
  const seen = new Set<string>();
  for (let round = 0; round < 3; round++)
    for (const { tag } of guard.watch(10, cursor)) seen.add(tag);
  expect(seen.size).toBe(25);
});
