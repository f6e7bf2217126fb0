import { countOf, idsOf, lastOf, MAX_ID, segmentOf, slice } from "@idmint/core";
import { idAt } from "../../src/segment/segment.ts";
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
