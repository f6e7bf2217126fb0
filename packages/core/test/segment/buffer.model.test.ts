import {
  type BufferEvent,
  DecimalTexts,
  IdmintError,
  idsOf,
  type Load,
  type LoadRequest,
  type Segment,
  SegmentBuffer,
  segmentOf,
} from "@idmint/core";
import { FakeTime } from "@idmint/testkit";
import fc from "fast-check";
import { expect, test } from "vitest";

/** What happens to one load, besides being scheduled at any time. */
type Fate = "ok" | "lost" | "refused" | "unavailable" | "stale";

type Step =
  | { do: "next" }
  | { do: "tryNext" }
  | { do: "tryNextNumber" }
  | { do: "tryNextText" }
  | { do: "take"; count: number }
  | { do: "takeFewer"; count: number }
  | { do: "putBack"; keep: number }
  | { do: "raiseEpoch"; tell: boolean }
  | { do: "fence" }
  | { do: "unfence" }
  | { do: "expireAll" }
  | { do: "wait"; ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Step>({ do: "next" }) },
  { weight: 4, arbitrary: fc.constant<Step>({ do: "tryNext" }) },
  { weight: 4, arbitrary: fc.constant<Step>({ do: "tryNextNumber" }) },
  { weight: 4, arbitrary: fc.constant<Step>({ do: "tryNextText" }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("take" as const),
      count: fc.integer({ min: 1, max: 25 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("takeFewer" as const),
      count: fc.integer({ min: 1, max: 25 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("putBack" as const), keep: fc.nat(25) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("raiseEpoch" as const), tell: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.constant<Step>({ do: "fence" }) },
  { weight: 1, arbitrary: fc.constant<Step>({ do: "unfence" }) },
  { weight: 1, arbitrary: fc.constant<Step>({ do: "expireAll" }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.nat(3_000) }) },
);
const fates = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.constant<Fate>("ok") },
    fc.constantFrom<Fate>("lost", "refused", "unavailable", "stale"),
  ),
  { minLength: 1, maxLength: 30 },
);

interface WorldOptions {
  scheduler: fc.Scheduler;
  fates: Fate[];
  /** Ids are counted from here: near 2^53 and 2^63 numbers would be wrong. */
  floor: bigint;
  ceiling: bigint;
  min: number;
  max: number;
  ordered: boolean;
}

/** A store with a floor, the buffer under test, and everything that any caller received. */
class World {
  readonly time = new FakeTime();
  readonly events: BufferEvent[] = [];
  readonly received = new Set<bigint>();
  readonly buffer: SegmentBuffer<number>;
  readonly #options: WorldOptions;
  readonly #texts = new DecimalTexts();
  /** Epoch of each id, and how many generations had ended when its load started; ids of lost answers are not in it. */
  readonly #grantedUnder = new Map<bigint, { epoch: bigint; generation: number }>();
  #floor: bigint;
  #oldFloor = 0n;
  #epoch = 1n;
  #loads = 0;
  #inFlight = 0;
  #generations = 0;
  readonly refusals: string[] = [];
  granted = 0;
  last = -1n;
  taken: { segments: readonly Segment[]; generation: symbol } | undefined;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.#floor = options.floor;
    const { min, max, ordered } = options;
    this.buffer = new SegmentBuffer<number>(
      "t",
      { min, max, holdForMs: 10_000, prefetchShare: 0.1, maxWaiters: 90, ordered },
      {
        load: async (request) => this.#load(request),
        clock: this.time,
        timers: this.time,
        random: () => 0.5,
        onEvent: (event) => this.#note(event),
      },
    );
  }

  #note(event: BufferEvent): void {
    this.events.push(event);
    if (event.type === "load-failed" && event.error.reason === "TAG_PAUSED") this.#generations++;
  }

  async #load(request: LoadRequest): Promise<Load<number>> {
    const { scheduler } = this.#options;
    const fate = this.#options.fates[this.#loads++ % this.#options.fates.length];
    const generation = this.#generations;
    this.#inFlight++;
    // Whatever ends a generation gives up the load in flight; only then may another one overlap with it.
    if (this.#inFlight > 1 && generation === 0) throw new Error("two loads in flight");
    try {
      await scheduler.schedule(Promise.resolve(), "to the store");
      if (fate === "refused") throw new IdmintError("TAG_PAUSED", "refused");
      if (fate === "unavailable") throw new IdmintError("STORE_UNAVAILABLE", "nothing was done");
      const left = this.#options.ceiling - this.#floor;
      const count = left < BigInt(request.count) ? Number(left) : request.count;
      if (count < request.minCount) throw new IdmintError("TAG_EXHAUSTED", "at the end");
      const { base, epoch } = this.#grant(count, fate);
      await scheduler.schedule(Promise.resolve(), "from the store");
      if (fate === "lost") throw new IdmintError("STORE_UNAVAILABLE", "outcome unknown");
      const half = Math.ceil(count / 2);
      const segments = [segmentOf(base, half)];
      if (count > half) segments.push(segmentOf(base + BigInt(half), count - half));
      this.granted += count;
      for (const id of idsOf(segments)) this.#grantedUnder.set(id, { epoch, generation });
      return { segments, epoch, receipt: this.#loads };
    } finally {
      this.#inFlight--;
    }
  }

  /**
   * A stale answer comes from a server that lags: of ids it got long ago, below what this buffer has (which only an
   * ordered buffer minds), or under an epoch that has passed.
   */
  #grant(count: number, fate: Fate | undefined): { base: bigint; epoch: bigint } {
    if (fate === "stale" && this.#options.ordered) {
      const base = this.#oldFloor + 1n;
      this.#oldFloor += BigInt(count);
      return { base, epoch: this.#epoch };
    }
    const base = this.#floor + 1n;
    this.#floor += BigInt(count);
    return { base, epoch: fate === "stale" && this.#epoch > 1n ? this.#epoch - 1n : this.#epoch };
  }

  /** Calls that overlap have no order; what counts is the highest id received before this one was asked for. */
  #receive(ids: Iterable<bigint>, whenAsked: bigint): void {
    for (const id of ids) {
      if (this.received.has(id)) throw new Error(`id ${id} twice`);
      const grant = this.#grantedUnder.get(id);
      if (grant === undefined) throw new Error(`id ${id} was never granted to this buffer`);
      const { epoch, generation } = grant;
      if (epoch < this.buffer.epoch)
        throw new Error(`id ${id} of epoch ${epoch} under ${this.buffer.epoch}`);
      if (generation < this.#generations)
        throw new Error(`id ${id} was asked for before the last fence`);
      if (this.#options.ordered && id <= whenAsked) throw new Error(`id ${id} after ${whenAsked}`);
      if (id > this.last) this.last = id;
      this.received.add(id);
    }
  }

  async run(action: Step): Promise<void> {
    try {
      await this.#act(action);
    } catch (error) {
      if (!(error instanceof IdmintError)) throw error;
      this.refusals.push(error.reason);
    }
  }

  async #act(action: Step): Promise<void> {
    const { last: whenAsked } = this;
    switch (action.do) {
      case "next": {
        const id = this.buffer.next();
        this.#receive([typeof id === "bigint" ? id : await id], whenAsked);
        break;
      }
      case "tryNext": {
        const id = this.buffer.tryNext();
        if (id !== undefined) this.#receive([id], whenAsked);
        break;
      }
      case "tryNextNumber": {
        const id = this.buffer.tryNextNumber();
        if (!Number.isSafeInteger(id)) throw new Error(`unsafe number ${id}`);
        if (id >= 0) this.#receive([BigInt(id)], whenAsked);
        break;
      }
      case "tryNextText": {
        const text = this.buffer.tryNextText(this.#texts);
        if (text !== undefined) this.#receive([BigInt(text)], whenAsked);
        break;
      }
      case "take":
      case "takeFewer": {
        const allowFewer = action.do === "takeFewer";
        const { generation } = this.buffer;
        const answer = this.buffer.take(action.count, undefined, 0n, allowFewer);
        const segments = answer instanceof Promise ? await answer : answer;
        const ids = [...idsOf(segments)];
        if (!allowFewer && ids.length !== action.count)
          throw new Error(`${ids.length} of ${action.count} ids`);
        if (ids.length > action.count || ids.length === 0)
          throw new Error(`${ids.length} of ${action.count} ids`);
        this.#receive(ids, whenAsked);
        this.taken = { segments, generation };
        break;
      }
      case "putBack": {
        const { taken } = this;
        this.taken = undefined;
        const end = taken?.segments.at(-1);
        if (taken === undefined || end === undefined || action.keep >= end.count) break;
        const suffix = [segmentOf(end.base + BigInt(action.keep), end.count - action.keep)];
        const count = this.buffer.putBack(suffix, taken.generation);
        if (count > 0) for (const id of idsOf(suffix)) this.received.delete(id);
        break;
      }
      case "raiseEpoch":
        this.#epoch++;
        this.#floor += 5n;
        if (action.tell) this.buffer.observeEpoch(this.#epoch);
        break;
      case "fence":
        this.#generations++;
        this.buffer.fence(new IdmintError("STORE_EPOCH_CHANGED", "gone back"));
        break;
      case "unfence":
        this.buffer.unfence();
        break;
      case "expireAll":
        this.#generations++;
        this.buffer.expireAll();
        break;
      case "wait":
        this.time.advance(action.ms);
        this.buffer.sample();
        break;
    }
  }

  /** No id appears from nowhere and none is lost without a word. */
  assertConserved(): void {
    let wasted = 0;
    let loaded = 0;
    for (const event of this.events) {
      if (event.type === "wasted" && event.cause !== "rejected") wasted += event.count;
      if (event.type === "loaded") loaded += event.count;
    }
    expect(this.received.size + this.buffer.ready + wasted).toBe(loaded);
  }
}

async function runWorld(options: WorldOptions, steps: Step[]): Promise<World> {
  const world = new World(options);
  const runs: Promise<void>[] = [];
  const failures: unknown[] = [];
  for (const action of steps) {
    runs.push(
      options.scheduler
        .schedule(Promise.resolve(), action.do)
        .then(async () => world.run(action))
        .catch((error: unknown) => {
          failures.push(error);
        }),
    );
  }
  await options.scheduler.waitIdle();
  // Waiting calls end by their own time limit.
  for (let i = 0; i < 20; i++) {
    world.time.advance(1_000);
    await options.scheduler.waitIdle();
  }
  await Promise.all(runs);
  expect(failures).toEqual([]);
  expect(world.buffer.busy).toBe(false);
  world.assertConserved();
  return world;
}

const sizes = fc.record({ min: fc.integer({ min: 1, max: 12 }), more: fc.nat(30) });

test("whatever the schedule and the faults, no id is issued twice, lost, or of an old epoch", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fates,
      fc.array(step, { minLength: 1, maxLength: 60 }),
      sizes,
      async (scheduler, planned, steps, { min, more }) => {
        const ceiling = 2n ** 63n - 1n;
        const options = {
          scheduler,
          fates: planned,
          floor: 0n,
          ceiling,
          min,
          max: min + more,
          ordered: false,
        };
        await runWorld(options, steps);
      },
    ),
    { numRuns: 1_500 },
  );
});

test("an ordered buffer never goes down, even when a server answers ids below `after`", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fates,
      fc.array(
        step.filter((s) => s.do !== "putBack"),
        { minLength: 1, maxLength: 60 },
      ),
      sizes,
      async (scheduler, planned, steps, { min, more }) => {
        const ceiling = 2n ** 63n - 1n;
        const options = {
          scheduler,
          fates: planned,
          floor: 10_000n,
          ceiling,
          min,
          max: min + more,
          ordered: true,
        };
        await runWorld(options, steps);
      },
    ),
    { numRuns: 1_000 },
  );
});

for (const end of [2n ** 53n + 30n, 2n ** 63n - 1n]) {
  test(`ids are exact up to ${end}, and then the tag is exhausted`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), sizes, async (scheduler, { min, more }) => {
        const floor = end - 80n;
        const planned: Fate[] = ["ok"];
        const options = {
          scheduler,
          fates: planned,
          floor,
          ceiling: end,
          min,
          max: min + more,
          ordered: false,
        };
        const world = await runWorld(
          options,
          Array.from({ length: 81 }, () => ({ do: "next" as const })),
        );
        expect([...world.received].toSorted((a, b) => (a < b ? -1 : 1))).toEqual(
          Array.from({ length: 80 }, (_, i) => floor + BigInt(i) + 1n),
        );
        expect(world.refusals).toEqual(["TAG_EXHAUSTED"]);
      }),
      { numRuns: 50 },
    );
  });
}
