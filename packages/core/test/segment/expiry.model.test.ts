import { idsOf, type Load, type LoadRequest, SegmentBuffer, segmentOf } from "@idmint/core";
import { FakeTime } from "@idmint/testkit";
import fc from "fast-check";
import { expect, test } from "vitest";

const OPTIONS = {
  min: 20,
  max: 20,
  holdForMs: 5_000,
  prefetchShare: 0.5,
  maxWaiters: 100,
  ordered: false,
};
const MAX_AGE_MS = 10_000;
const DEADLINE_MS = 60_000;

/** A program that uses ids one by one, and what of them is too old by its own clock. */
class Program {
  readonly time = new FakeTime(1_000);
  issued = 0;
  readonly late: string[] = [];
  readonly #answers: (() => void)[] = [];
  readonly #expiries: number[] = [];
  readonly #buffer: SegmentBuffer<undefined>;

  constructor() {
    const { time } = this;
    const load = ({ count }: LoadRequest): Promise<Load<undefined>> => {
      const { promise, resolve } = Promise.withResolvers<Load<undefined>>();
      const expiresAt = time.now() + MAX_AGE_MS;
      this.#answers.push(() => {
        const base = BigInt(this.#expiries.length);
        for (let at = 0; at < count; at++) this.#expiries.push(expiresAt);
        resolve({ segments: [segmentOf(base, count)], epoch: 1n, receipt: undefined, expiresAt });
      });
      return promise;
    };
    const ports = { load, clock: time, timers: time, random: () => 0 };
    this.#buffer = new SegmentBuffer("orders", OPTIONS, ports);
  }

  async do(what: Step["does"]): Promise<void> {
    const buffer = this.#buffer;
    const call = { deadline: this.time.now() + DEADLINE_MS };
    if (what === "answer") this.#answers.shift()?.();
    else if (what === "sample") buffer.sample();
    else if (what === "next") this.#use(await buffer.next(call));
    else if (what === "take") for (const id of idsOf(await buffer.take(1, call))) this.#use(id);
    else {
      const id = buffer.tryNext();
      if (id !== undefined) this.#use(id);
    }
  }

  #use(id: bigint): void {
    this.issued++;
    const lateMs = this.time.now() - (this.#expiries[Number(id)] ?? -Infinity);
    if (lateMs >= 0) this.late.push(`${id} is issued ${lateMs} ms after it expired`);
  }
}

// Further apart than what a buffer takes for one burst.
const anyStep = fc.record({
  does: fc.constantFrom("answer", "answer", "next", "sample", "take", "tryNext", "tryNext"),
  ms: fc.oneof(fc.integer({ min: 2, max: 900 }), fc.integer({ min: 2, max: 9_999 })),
});
type Step = typeof anyStep extends fc.Arbitrary<infer One> ? One : never;

test("a program that uses ids one by one gets none that has expired, whenever it looks", async () => {
  let issued = 0;
  const walk = fc.asyncProperty(
    fc.array(anyStep, { minLength: 20, maxLength: 150, size: "max" }),
    async (steps) => {
      const program = new Program();
      for (const { does, ms } of steps) {
        program.time.advance(ms);
        // A call that is refused got nothing.
        void program.do(does).catch(() => undefined);
        for (let turn = 0; turn < 8; turn++) await Promise.resolve();
        expect(program.late).toEqual([]);
      }
      issued += program.issued;
    },
  );
  await fc.assert(walk, { numRuns: 100, endOnFailure: true });
  expect(issued).toBeGreaterThan(1_000);
});
