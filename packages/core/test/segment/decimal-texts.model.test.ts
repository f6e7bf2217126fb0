import { type BufferOptions, DecimalTexts, idsOf, SegmentBuffer, segmentOf } from "@idmint/core";
import { FakeTime } from "@idmint/testkit";
import fc from "fast-check";
import { expect, test } from "vitest";

const MAX_ID = 2n ** 63n - 1n;

/** Where texts get longer, end in another thousand, or stop to be exact as numbers. */
const edges = [0n, 1_000n, 1_000_000n, 10n ** 12n, 2n ** 31n * 1_000n, 2n ** 53n, MAX_ID];

const around = (edge: bigint): fc.Arbitrary<bigint> =>
  fc
    .bigInt({ min: edge - 2_500n, max: edge + 2_500n })
    .map((id) => (id < 0n ? -id : id > MAX_ID ? 2n * MAX_ID - id : id));

const start = fc.oneof(
  ...edges.map(around),
  fc.nat(63).chain((bits) => fc.bigInt({ min: 0n, max: 2n ** BigInt(bits) - 1n })),
);

const increment = fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 3_000 }), fc.nat(2 ** 31 - 2));

const segment = fc
  .record({ start, increment, count: fc.integer({ min: 1, max: 60 }) })
  .map(({ start: base, increment: step, count }) => {
    const by = Math.max(1, step);
    const most = Number((MAX_ID - base) / BigInt(by)) + 1;
    return segmentOf(base, Math.min(count, most), by);
  });

const options: BufferOptions = {
  min: 1,
  max: 1,
  holdForMs: 60_000,
  prefetchShare: 0.1,
  maxWaiters: 10,
  ordered: false,
};

test("a buffer writes every id as String() does, whichever segments follow each other", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(segment, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 }),
      fc.array(fc.boolean(), { minLength: 1 }),
      async (loads, isText) => {
        const time = new FakeTime();
        const left = [...loads];
        const buffer = new SegmentBuffer<string>("t", options, {
          load: async () => {
            const segments = left.shift();
            if (segments === undefined) throw new Error("no more");
            return { segments, epoch: 1n, receipt: "" };
          },
          clock: time,
          timers: time,
          random: () => 0.5,
        });
        const texts = new DecimalTexts();
        const expected = loads.flatMap((segments) => [...idsOf(segments)]).map(String);
        const written: string[] = [];
        for (let tries = 0; written.length < expected.length && tries < 1_000; tries++) {
          // Ids that are taken otherwise in between leave gaps.
          const text = isText[tries % isText.length]
            ? buffer.tryNextText(texts)
            : buffer.tryNext()?.toString();
          if (text !== undefined) written.push(text);
          else await Promise.resolve();
        }
        expect(written).toEqual(expected);
      },
    ),
    { numRuns: 300 },
  );
});

test("numbers are written as String() does, in any order", () => {
  const short = start.filter((id) => id < 10n ** 12n).map(Number);
  const near = fc
    .tuple(short, fc.array(fc.integer({ min: -1_500, max: 1_500 }), { maxLength: 30 }))
    .map(([from, steps]) => steps.map((step) => from + step).filter(isShort));
  fc.assert(
    fc.property(fc.array(near, { maxLength: 5 }), (runs) => {
      const texts = new DecimalTexts();
      const ids = runs.flat();
      expect(ids.map((id) => texts.of(id))).toEqual(ids.map(String));
    }),
    { numRuns: 1_000 },
  );
});

test("ten thousand neighbours are written right over each end of a thousand", () => {
  for (const edge of [0, 999_000, 2 ** 31, 10 ** 12 - 10_001]) {
    const texts = new DecimalTexts();
    const ids = Array.from({ length: 10_001 }, (_, at) => edge + at);
    expect(ids.map((id) => texts.of(id))).toEqual(ids.map(String));
  }
});

function isShort(id: number): boolean {
  return id >= 0 && id < 1e12;
}
