// A client on a strict tag against a simulated fleet, under any order of events that fast-check finds.
import { IdmintError } from "@idmint/core";
import type { GenerateIdsResponse } from "@idmint/proto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type FakeWorld, fakeWorld, type PendingGenerate, settle } from "../fake-transport.ts";
import { wrongKind } from "./uncached-support.ts";
import { UNTOLD } from "../support.ts";

type Outcome = "answered" | "lost" | "notRaised" | "refused" | "unavailable";
type Action =
  | { readonly do: "abort" | "midnight" | "pause" | "tick" }
  | { readonly do: "next"; readonly deadlineMs: number }
  | { readonly do: "granted" }
  | { readonly do: "settle"; readonly outcome: Outcome }
  | { readonly do: "others"; readonly count: number }
  | { readonly do: "wait"; readonly ms: number };

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("next" as const),
      deadlineMs: fc.constantFrom(30, 1_000, 5_000),
    }),
  },
  { weight: 4, arbitrary: fc.constant({ do: "granted" as const }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      outcome: fc.constantFrom<Outcome>(
        "answered",
        "answered",
        "answered",
        "lost",
        "notRaised",
        "refused",
        "unavailable",
      ),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("others" as const), count: fc.nat(20) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("wait" as const),
      ms: fc.constantFrom(20, 300, 61_000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      { do: "abort" as const },
      { do: "midnight" as const },
      { do: "pause" as const },
      { do: "tick" as const },
    ),
  },
);

const DAY_MS = 86_400_000;

/** What the store has: one counter for all servers, which starts again at midnight. */
class Fleet {
  readonly #hasPeriods: boolean;
  #floor = 0n;
  #epoch = 1n;
  #day = 0;

  constructor(hasPeriods: boolean) {
    this.#hasPeriods = hasPeriods;
  }

  midnight(): void {
    if (!this.#hasPeriods) return;
    this.#day++;
    this.#floor = 0n;
  }

  /** Paused and resumed. */
  pause(): void {
    this.#epoch += 2n;
  }

  others(count: number): void {
    this.#floor += BigInt(count);
  }

  grant(count: number): GenerateIdsResponse {
    const base = this.#floor + 1n;
    this.#floor += BigInt(count);
    return {
      segments: [{ base, count, increment: 1 }],
      ids: [],
      texts: [],
      epoch: this.#epoch,
      period: this.#hasPeriods ? new Date(this.#day * DAY_MS).toISOString().slice(0, 10) : "",
      periodEndTime: this.#hasPeriods ? new Date((this.#day + 1) * DAY_MS) : undefined,
      ...UNTOLD,
    };
  }
}

/** A place in the order of ids: days before numbers. */
interface Place {
  readonly day: string;
  readonly id: bigint;
}

function isBefore(a: Place, b: Place): boolean {
  return a.day < b.day || (a.day === b.day && a.id < b.id);
}

class Run {
  readonly #fleet: Fleet;
  readonly #world: FakeWorld;
  readonly #hasPeriods: boolean;
  readonly #waiting: Promise<void>[] = [];
  readonly #answered: Place[] = [];
  readonly #granted = new Map<PendingGenerate, GenerateIdsResponse>();
  #abort = new AbortController();
  #highest: Place | undefined;

  constructor(hasPeriods: boolean) {
    this.#fleet = new Fleet(hasPeriods);
    this.#hasPeriods = hasPeriods;
    this.#world = fakeWorld({ addresses: ["a:1", "b:1", "c:1"], maxWaiters: 8 });
  }

  async run(actions: readonly Action[]): Promise<void> {
    const { transport, time } = this.#world;
    for (const each of actions) {
      this.#act(each);
      await this.#settled();
      // One request a tag, and those who wait are bounded.
      expect(transport.generating.length + transport.pending.length).toBeLessThanOrEqual(1);
      expect(transport.generating[0]?.request.count ?? 0).toBeLessThanOrEqual(8);
    }
    const closing = this.#world.client.close();
    await settle();
    time.advance(500);
    await closing;
    await Promise.all(this.#waiting);
    const names = this.#answered.map(({ day, id }) => `${day}/${id}`);
    expect(new Set(names).size).toBe(names.length);
    expect([transport.generating, transport.pending]).toEqual([[], []]);
  }

  /** Every AllocateSegment is refused at once: the tag is a sequence. */
  async #settled(): Promise<void> {
    await settle();
    for (const call of this.#world.transport.pending.splice(0)) call.fail(wrongKind("sequence"));
    await settle();
    await settle();
  }

  #act(each: Action): void {
    const { time, tick } = this.#world;
    switch (each.do) {
      case "next":
        this.#waiting.push(this.#next(each.deadlineMs));
        break;
      case "granted":
        this.#grant();
        break;
      case "settle":
        this.#settleOne(each.outcome);
        break;
      case "others":
        this.#fleet.others(each.count);
        break;
      case "midnight":
        this.#fleet.midnight();
        break;
      case "pause":
        this.#fleet.pause();
        break;
      case "abort":
        this.#abort.abort();
        this.#abort = new AbortController();
        break;
      case "wait":
        time.advance(each.ms);
        break;
      case "tick":
        tick();
        break;
    }
  }

  /** What is asked for now must be beyond all that has been answered by now. */
  async #next(deadlineMs: number): Promise<void> {
    const before = this.#highest;
    const tag = this.#world.client.tag("t");
    const options = { deadlineMs, signal: this.#abort.signal };
    try {
      const place = this.#hasPeriods
        ? await tag.nextPeriodId(options).then(({ period, id }) => ({ day: period, id }))
        : { day: "", id: await tag.next(options) };
      if (before !== undefined) expect(isBefore(before, place)).toBe(true);
      this.#answered.push(place);
      if (this.#highest === undefined || isBefore(this.#highest, place)) this.#highest = place;
    } catch (error) {
      // An expectation that failed is no refusal.
      if (!(error instanceof IdmintError)) throw error;
      expect(error.reason).not.toBe("INTERNAL");
      expect(error.reason).not.toBe("WRONG_KIND");
    }
  }

  /** The store has granted, and the answer is still on its way: others may be granted more before it arrives. */
  #grant(): PendingGenerate | undefined {
    const [call] = this.#world.transport.generating;
    if (call !== undefined && !this.#granted.has(call)) {
      this.#granted.set(call, this.#fleet.grant(call.request.count));
    }
    return call;
  }

  #settleOne(outcome: Outcome): void {
    const call = this.#world.transport.generating[0];
    if (call === undefined) return;
    if (outcome === "answered" || outcome === "lost") this.#grant();
    this.#world.transport.generating.shift();
    const granted = this.#granted.get(call);
    if (outcome === "answered" && granted !== undefined) call.answer(granted);
    else if (outcome === "refused") call.fail(new IdmintError("OVERLOADED", "too much"));
    else if (outcome === "notRaised") {
      call.fail(new IdmintError("MAX_NOT_RAISED", "soon", { retryAfterMs: 200 }));
    } else call.fail(new IdmintError("SERVER_UNAVAILABLE", "the connection broke"));
  }
}

for (const hasPeriods of [false, true]) {
  const name = hasPeriods ? "with periods" : "without periods";
  test(`whatever fails, a sequence ${name} answers no id twice, and none below one answered before it was asked for`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 80 }), async (actions) => {
        await new Run(hasPeriods).run(actions);
      }),
      { numRuns: 400 },
    );
  });
}

test("many tasks that each await their ids see them only grow, over three servers that come and go", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(fc.constantFrom<Outcome>("answered", "lost", "unavailable"), { maxLength: 60 }),
      async (scheduler, outcomes) => {
        const world = fakeWorld({ addresses: ["a:1", "b:1", "c:1"], deadlineMs: 600_000 });
        const fleet = new Fleet(false);
        const tag = world.client.tag("t");
        let highest = 0n;
        const task = async (): Promise<void> => {
          for (let i = 0; i < 10; i++) {
            const before = highest;
            const id = await tag.next();
            expect(id > before).toBe(true);
            if (id > highest) highest = id;
          }
        };
        const tasks = Promise.all([task(), task(), task(), task()]);
        const progress = { isOver: false };
        const end = (): void => {
          progress.isOver = true;
        };
        void tasks.then(end, end);
        const answers = async (): Promise<void> => {
          for (let turn = 0; !progress.isOver; turn++) {
            await settle();
            for (const call of world.transport.pending.splice(0)) call.fail(wrongKind("sequence"));
            const call = world.transport.generating.shift();
            if (call === undefined) {
              world.time.advance(100);
              continue;
            }
            const outcome = outcomes[turn] ?? "answered";
            const granted = outcome === "unavailable" ? undefined : fleet.grant(call.request.count);
            await scheduler.schedule(Promise.resolve());
            if (outcome === "answered" && granted !== undefined) call.answer(granted);
            else call.fail(new IdmintError("SERVER_UNAVAILABLE", "the connection broke"));
          }
        };
        await scheduler.waitFor(Promise.all([tasks, answers()]));
        await world.client.close();
      },
    ),
    { numRuns: 100 },
  );
});
