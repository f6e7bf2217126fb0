import { idsOf, SeenRanges, type Segment, segmentOf } from "@idmint/core";
import { commonIdOf } from "../../src/segment/seen-ranges.ts";
import fc from "fast-check";
import { expect, test } from "vitest";

const segment: fc.Arbitrary<Segment> = fc
  .record({
    base: fc.bigInt({ min: 0n, max: 300n }),
    count: fc.integer({ min: 1, max: 12 }),
    increment: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 9 })),
  })
  .map(({ base, count, increment }) => segmentOf(base, count, increment));
const answers = fc.array(fc.array(segment, { minLength: 1, maxLength: 4 }), { maxLength: 40 });

test("two segments have an id in common exactly when one id stands in both", () => {
  fc.assert(
    fc.property(segment, segment, (a, b) => {
      const inBoth = [...idsOf([a])].filter((id) => [...idsOf([b])].includes(id));
      expect(commonIdOf(a, b)).toBe(inBoth[0]);
    }),
    { numRuns: 5_000 },
  );
});

test("an answer is admitted exactly when none of its ids came in before, nor stands in it twice", () => {
  fc.assert(
    fc.property(answers, (all) => {
      const seen = new SeenRanges();
      const ids = new Set<bigint>();
      for (const answer of all) {
        let isRepeat = false;
        const repeated = seen.admit(answer);
        // It remembers up to the segment with the repeat, and nothing of the rest.
        for (const part of answer) {
          if ([...idsOf([part])].some((id) => ids.has(id))) {
            isRepeat = true;
            expect([...idsOf([part])]).toContain(repeated);
            expect(ids).toContain(repeated);
            break;
          }
          for (const id of idsOf([part])) ids.add(id);
        }
        if (!isRepeat) expect(repeated).toBeUndefined();
      }
    }),
    { numRuns: 2_000 },
  );
});

test("the last ranges are remembered, and neighbouring ids are one range", () => {
  const seen = new SeenRanges(10);
  // One range for all of these.
  for (let at = 0n; at < 5_000n; at += 10n) seen.admit([segmentOf(at, 10)]);
  for (let at = 1n; at < 10n; at++)
    expect(seen.admit([segmentOf(at * 10_000n, 5)])).toBeUndefined();
  expect(seen.admit([segmentOf(4_321n, 1)])).toBe(4_321n);
  for (let at = 10n; at < 100n; at++) {
    expect(seen.admit([segmentOf(at * 10_000n, 5)])).toBeUndefined();
    for (let back = 0n; back < 10n; back++) {
      const id = (at - back) * 10_000n + 2n;
      expect(seen.admit([segmentOf(id, 1)])).toBe(id);
    }
  }
});

test("what interleaves is remembered as well", () => {
  const seen = new SeenRanges(10);
  for (let at = 0n; at < 40n; at++) {
    expect(seen.admit([segmentOf(at * 100n, 10, 4), segmentOf(at * 100n + 1n, 10, 4)])).toBe(
      undefined,
    );
    // Both of its ids are known.
    expect(seen.admit([segmentOf(at * 100n + 5n, 2, 3)])).toBeOneOf([
      at * 100n + 5n,
      at * 100n + 8n,
    ]);
  }
});

test("ids up to the last one there is are compared exactly", () => {
  const end = 2n ** 63n - 1n;
  const seen = new SeenRanges();
  expect(seen.admit([segmentOf(end - 10n, 10)])).toBeUndefined();
  expect(seen.admit([segmentOf(end, 1)])).toBeUndefined();
  expect(seen.admit([segmentOf(end - 11n, 2)])).toBe(end - 10n);
});
