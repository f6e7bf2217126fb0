import { idsOf, type Load, type LoadRequest, SegmentBuffer, segmentOf } from "@idmint/core";
import { FakeTime } from "@idmint/testkit";
import fc from "fast-check";
import { expect, test } from "vitest";

const OPTIONS = {
  min: 400,
  max: 400,
  holdForMs: 5_000,
  prefetchShare: 0.5,
  maxWaiters: 100,
  ordered: false,
};
const MAX_AGE_MS = 10_000;
const DEADLINE_MS = 60_000;
/** Ids that are asked for in one turn. */
const BURST = 40;
/** For so long what is left of them is issued without a look at the clock. */
const BURST_MS = 1;

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

  /** `isLater`: timers had their turn since the last step. */
  async do(what: Step["does"], isLater: boolean): Promise<void> {
    const buffer = this.#buffer;
    const call = { deadline: this.time.now() + DEADLINE_MS };
    if (what === "answer") this.#answers.shift()?.();
    else if (what === "sample") buffer.sample();
    else if (what === "next") this.#use(await buffer.next(call), isLater);
    else if (what === "take")
      for (const id of idsOf(await buffer.take(1, call))) this.#use(id, isLater);
    else
      for (let left = what === "burst" ? BURST : 1; left > 0; left--) {
        const id = buffer.tryNext();
        if (id !== undefined) this.#use(id, isLater);
      }
  }

  #use(id: bigint, isLater: boolean): void {
    this.issued++;
    const lateMs = this.time.now() - (this.#expiries[Number(id)] ?? -Infinity);
    if (lateMs >= (isLater ? 0 : BURST_MS))
      this.late.push(`${id} is issued ${lateMs} ms after it expired`);
  }
}

const anyDeed = fc.constantFrom(
  ...(["answer", "answer", "burst", "next", "sample", "take", "tryNext", "tryNext"] as const),
);
const anyStep = fc.record({
  does: anyDeed,
  ms: fc.oneof(
    fc.constantFrom(0, 0.3, 0.9),
    fc.integer({ min: 1, max: 900 }),
    fc.integer({ min: 1, max: 9_999 }),
  ),
});
type Step = typeof anyStep extends fc.Arbitrary<infer One> ? One : never;

// The stronger sentence of `burst.ts` for a process that is not stopped: timers run here as soon as they are due.
test("no id is issued past its age, save within a millisecond of a burst, whenever a program asks", async () => {
  let issued = 0;
  const walk = fc.asyncProperty(
    fc.array(anyStep, { minLength: 20, maxLength: 150, size: "max" }),
    async (steps) => {
      const program = new Program();
      for (const { does, ms } of steps) {
        program.time.advance(ms);
        // A call that is refused got nothing.
        void program.do(does, ms >= BURST_MS).catch(() => undefined);
        for (let turn = 0; turn < 8; turn++) await Promise.resolve();
        expect(program.late).toEqual([]);
      }
      issued += program.issued;
    },
  );
  await fc.assert(walk, { numRuns: 100, endOnFailure: true });
  expect(issued).toBeGreaterThan(1_000);
});
