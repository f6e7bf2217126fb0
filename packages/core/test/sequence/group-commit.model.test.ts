import { type BufferEvent, type Committed, GroupCommit, IdmintError } from "@idmint/core";
import { FakeTime } from "@idmint/testkit";
import fc from "fast-check";
import { expect, test } from "vitest";

/** What happens to one round trip, besides being scheduled at any time. */
type Fate = "ok" | "lost" | "late" | "refused" | "unavailable" | "stale";

type Step =
  | { do: "take"; server: number; count: number; patienceMs: number }
  | { do: "cancel"; call: number }
  | { do: "raiseEpoch"; tell: boolean }
  | { do: "nextPeriod" }
  | { do: "fence"; server: number }
  | { do: "unfence"; server: number }
  | { do: "fenceBriefly"; server: number }
  | { do: "wait"; ms: number };

const SERVERS = 3;
const MAX_WAITERS = 6;
const MAX_COUNT = 20;
/** Round trips that take longer are given up by whoever asked, as the server's grants are. */
const GIVEN_UP_AFTER_MS = 500;

const server = fc.nat(SERVERS - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant("take" as const),
      server,
      count: fc.integer({ min: 1, max: MAX_COUNT }),
      patienceMs: fc.constantFrom(20, 200, 5_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("cancel" as const), call: fc.nat(40) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("raiseEpoch" as const), tell: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.constant<Step>({ do: "nextPeriod" }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fence" as const), server }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("unfence" as const), server }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("fenceBriefly" as const), server }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.nat(300) }) },
);
const fates = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.constant<Fate>("ok") },
    fc.constantFrom<Fate>("lost", "late", "refused", "unavailable", "stale"),
  ),
  { minLength: 1, maxLength: 30 },
);

/** A call that was answered: when it was asked and answered, in steps of one clock over all servers, and its ids. */
interface Answered {
  readonly asked: number;
  readonly answered: number;
  readonly period: number;
  readonly first: bigint;
  readonly last: bigint;
}

/** A row of a store, several servers that commit in groups to it, and everything that any caller received. */
class World {
  readonly time = new FakeTime();
  readonly answers: Answered[] = [];
  readonly reasons: string[] = [];
  readonly events: BufferEvent[] = [];
  readonly #servers: readonly GroupCommit[];
  readonly #scheduler: fc.Scheduler;
  readonly #fates: readonly Fate[];
  readonly #ceiling: bigint;
  readonly #calls: AbortController[] = [];
  readonly #waiting: number[];
  #floor = 0n;
  #period = 1;
  #epoch = 1n;
  #told = 1n;
  #trips = 0;
  #tick = 0;
  /** Ids of round trips whose answer reached its server. */
  granted = 0;

  constructor(scheduler: fc.Scheduler, planned: readonly Fate[], ceiling: bigint) {
    this.#scheduler = scheduler;
    this.#fates = planned;
    this.#ceiling = ceiling;
    this.#waiting = Array.from({ length: SERVERS }, () => 0);
    this.#servers = this.#waiting.map(
      () =>
        new GroupCommit(
          "t",
          { maxWaiters: MAX_WAITERS, maxCount: MAX_COUNT },
          {
            commit: (_tag, count) => this.#commit(count),
            afterTurn: (run) => {
              void scheduler.schedule(Promise.resolve(), "turn").then(run);
            },
            clock: this.time,
            timers: this.time,
            onEvent: (event) => this.events.push(event),
          },
        ),
    );
  }

  async #commit(count: number): Promise<Committed> {
    const fate = this.#fates[this.#trips++ % this.#fates.length];
    expect(count).toBeLessThanOrEqual(MAX_COUNT);
    await this.#scheduler.schedule(Promise.resolve(), "to the store");
    if (fate === "refused") throw new IdmintError("TAG_PAUSED", "refused");
    if (fate === "unavailable") throw new IdmintError("STORE_UNAVAILABLE", "nothing was done");
    if (this.#floor + BigInt(count) > this.#ceiling) {
      throw new IdmintError("TAG_EXHAUSTED", "at the end");
    }
    const base = this.#floor + 1n;
    this.#floor += BigInt(count);
    // Granted by a session that had not seen the newest epoch.
    const epoch = fate === "stale" && this.#epoch > 1n ? this.#epoch - 1n : this.#epoch;
    const start = String(this.#period);
    await this.#scheduler.schedule(Promise.resolve(), "from the store");
    if (fate === "lost") throw new IdmintError("STORE_UNAVAILABLE", "outcome unknown");
    if (fate === "late") {
      const { promise, reject } = Promise.withResolvers<never>();
      this.time.after(GIVEN_UP_AFTER_MS, () => {
        reject(new IdmintError("STORE_UNAVAILABLE", "given up"));
      });
      return promise;
    }
    this.granted += count;
    return { base, count, epoch, period: { unit: "DAY", start, endsAtMs: 0 } };
  }

  async run(action: Step): Promise<void> {
    switch (action.do) {
      case "take":
        await this.#take(action.server, action.count, action.patienceMs);
        break;
      case "cancel":
        this.#calls[action.call]?.abort();
        break;
      case "raiseEpoch":
        this.#epoch++;
        this.#floor += 5n;
        if (!action.tell) break;
        this.#told = this.#epoch;
        for (const each of this.#servers) each.observeEpoch(this.#epoch);
        break;
      case "nextPeriod":
        this.#period++;
        this.#floor = 0n;
        break;
      case "fence":
        this.#servers[action.server]?.fence(new IdmintError("STORE_EPOCH_CHANGED", "gone back"));
        break;
      case "unfence":
        this.#servers[action.server]?.unfence();
        break;
      case "fenceBriefly":
        // A round trip that is in flight overlaps with the next one afterwards.
        this.#servers[action.server]?.fence(new IdmintError("TAG_PAUSED", "paused"));
        this.#servers[action.server]?.unfence();
        break;
      case "wait":
        this.time.advance(action.ms);
        break;
    }
  }

  async #take(at: number, count: number, patienceMs: number): Promise<void> {
    const commits = this.#servers[at];
    const waiting = this.#waiting[at];
    if (commits === undefined || waiting === undefined) throw new Error(`server ${at}`);
    const gone = new AbortController();
    this.#calls.push(gone);
    const told = this.#told;
    const deadline = this.time.now() + patienceMs;
    const asked = ++this.#tick;
    const answer = commits.take(count, { deadline, signal: gone.signal });
    this.#waiting[at] = waiting + 1;
    try {
      const { base, count: got, epoch, period } = await answer;
      const answered = ++this.#tick;
      expect(got).toBe(count);
      expect(epoch).toBeGreaterThanOrEqual(told);
      expect(this.time.now()).toBeLessThan(deadline);
      const last = base + BigInt(count) - 1n;
      this.answers.push({ asked, answered, period: Number(period?.start), first: base, last });
    } catch (error) {
      if (!(error instanceof IdmintError)) throw error;
      this.reasons.push(error.reason);
      // The limit is reached exactly when it says so.
      if (error.reason === "OVERLOADED") expect(waiting).toBe(MAX_WAITERS);
    } finally {
      this.#waiting[at] = (this.#waiting[at] ?? 0) - 1;
    }
    expect(waiting).toBeLessThanOrEqual(MAX_WAITERS);
  }

  get busy(): boolean {
    return this.#servers.some((each) => each.waiting > 0);
  }

  /** Answered before asked ⇒ smaller, by period and id; and nobody's ids overlap. */
  assertStrict(): void {
    for (const one of this.answers) {
      for (const other of this.answers) {
        if (one === other) continue;
        const isBefore =
          one.period < other.period || (one.period === other.period && one.last < other.first);
        const isAfter =
          one.period > other.period || (one.period === other.period && one.first > other.last);
        if (isBefore === isAfter) throw new Error(`${text(one)} and ${text(other)} overlap`);
        if (one.answered < other.asked && !isBefore) {
          throw new Error(`${text(other)} was asked for after ${text(one)} was answered`);
        }
      }
    }
  }

  /** What a server was granted was answered or counted as waste. */
  assertConserved(): void {
    const wasted = this.events.reduce(
      (sum, event) => sum + (event.type === "wasted" ? event.count : 0),
      0,
    );
    const received = this.answers.reduce(
      (sum, { first, last }) => sum + Number(last - first) + 1,
      0,
    );
    expect(received + wasted).toBe(this.granted);
  }
}

function text({ period, first, last }: Answered): string {
  return `${period}: ${first}…${last}`;
}

async function runWorld(
  scheduler: fc.Scheduler,
  planned: readonly Fate[],
  steps: readonly Step[],
  ceiling: bigint,
): Promise<World> {
  const world = new World(scheduler, planned, ceiling);
  const failures: unknown[] = [];
  const runs = steps.map((action) =>
    scheduler
      .schedule(Promise.resolve(), action.do)
      .then(() => world.run(action))
      .catch((error: unknown) => {
        failures.push(error);
      }),
  );
  await scheduler.waitIdle();
  // Calls that wait end by their own deadline, whatever the store does.
  for (let round = 0; round < 10; round++) {
    world.time.advance(1_000);
    await scheduler.waitIdle();
  }
  await Promise.all(runs);
  expect(failures).toEqual([]);
  expect(world.busy).toBe(false);
  world.assertStrict();
  world.assertConserved();
  return world;
}

test("whatever the schedule and the faults, an id asked for after another was answered is larger", async () => {
  let answers = 0;
  let calls = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fates,
      fc.array(step, { minLength: 1, maxLength: 60 }),
      async (scheduler, planned, steps) => {
        const world = await runWorld(scheduler, planned, steps, 2n ** 63n - 1n);
        answers += world.answers.length;
        calls += world.answers.length + world.reasons.length;
      },
    ),
    { numRuns: 1_500 },
  );
  // Most calls must be answered, or the property would say little.
  expect(answers).toBeGreaterThan(calls / 3);
});

test("near the tag's end whoever is refused wanted more than was left at some time since it asked", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(fc.integer({ min: 1, max: MAX_COUNT }), { minLength: 1, maxLength: MAX_WAITERS }),
      fc.bigInt({ min: 0n, max: 40n }),
      async (scheduler, counts, ceiling) => {
        const steps = counts.map((count) => ({
          do: "take" as const,
          server: 0,
          count,
          patienceMs: 5_000,
        }));
        const world = await runWorld(scheduler, ["ok"], steps, ceiling);
        const left = world.answers.reduce(
          (rest, { first, last }) => rest - (last - first + 1n),
          ceiling,
        );
        const answered = world.answers.map(({ first, last }) => Number(last - first) + 1);
        const refused = [...counts];
        for (const count of answered) refused.splice(refused.indexOf(count), 1);
        expect(world.reasons).toEqual(refused.map(() => "TAG_EXHAUSTED"));
        for (const count of refused) expect(BigInt(count)).toBeGreaterThan(left);
      },
    ),
    { numRuns: 500 },
  );
});
