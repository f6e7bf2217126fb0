// Servers that count one sequence in a Redis that is emptied, set back in the middle of its life and restarted with older
// data, over a store that fails.
import { type Clock, GroupCommit, IdmintError, type Timers } from "@idmint/core";
import { VersionGuard } from "@idmint/core/server";
import { MemoryStore } from "@idmint/testkit";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Raises } from "../../../src/service/upstream/raises.ts";
import { RedisMarks } from "../../../src/service/redis/marks.ts";
import { placeOf } from "../../../src/service/redis/place.ts";
import { RedisSequenceCounter } from "../../../src/service/kinds/sequence/redis-counter.ts";
import { FakeRedis, fakeRedisServer } from "./fake-redis.ts";
import { sequenceSettings, tagOf } from "./redis-tags.ts";

const TAG = "t";
const STEP = 20;
const CEILING = 1_000_000n;

const SETTINGS = sequenceSettings(TAG, { step: STEP, ceiling: CEILING });

type Fault = "none" | "before" | "after";

class World {
  readonly redis = new FakeRedis();
  readonly store: MemoryStore;
  readonly issued = new Set<bigint>();
  readonly repeated: bigint[] = [];
  readonly inverted: string[] = [];
  readonly refusals = new Set<string>();
  #highest = 0n;
  #fault: Fault = "none";
  #losesAnswer = false;
  #nowMs = 0;
  readonly #scheduler: fc.Scheduler;
  readonly #servers: GroupCommit[];
  readonly #marks: RedisMarks[] = [];
  readonly #pending: Promise<void>[] = [];

  constructor(scheduler: fc.Scheduler) {
    this.#scheduler = scheduler;
    this.store = new MemoryStore({
      faults: {
        before: async () => {
          await this.#step("a statement on its way");
          if (this.#fault === "before") throw down();
        },
        after: async () => {
          await this.#step("its outcome on its way");
          if (this.#fault === "after") throw down();
        },
      },
    });
    this.#servers = [0, 1, 2].map(() => this.#server());
  }

  async begin(): Promise<void> {
    await this.#scheduler.waitFor(this.store.createTag(SETTINGS));
  }

  take(server: number, count: number): void {
    // Everything up to here was answered before this call is asked.
    const above = this.#highest;
    const work = async (): Promise<void> => {
      try {
        const { base } = await this.#servers[server]!.take(count);
        for (let at = 0; at < count; at++) this.#received(base + BigInt(at), above);
      } catch (thrown) {
        this.refusals.add(IdmintError.from(thrown).reason);
      }
    };
    this.#pending.push(work());
  }

  /** A server is killed, and another one starts that has seen nothing. What the old one is answered is not received. */
  replace(server: number): void {
    const old = this.#servers[server]!;
    this.#servers[server] = this.#server();
    old.fence(new IdmintError("SERVER_UNAVAILABLE", "killed"));
  }

  disturb(fault: Fault): void {
    this.#fault = fault;
  }

  /** The store gives out a generation that no server gives Redis: it was asked by one that died, or gave up waiting. */
  raiseForNobody(): void {
    const raise = { tag: TAG, by: 0n, atLeast: 0n, newGeneration: true, seenVersion: 0n };
    this.#pending.push(this.store.raise(raise).then(ignore, ignore));
  }

  loseAnAnswer(): void {
    this.#losesAnswer = true;
  }

  async some(steps: number): Promise<void> {
    for (let step = 0; step < steps && this.#scheduler.count() > 0; step++) {
      await this.#scheduler.waitNext(1);
    }
  }

  async end(): Promise<void> {
    this.#fault = "none";
    this.#losesAnswer = false;
    // Back-offs are over.
    this.#nowMs += 10_000;
    await this.#scheduler.waitFor(Promise.all(this.#pending));
    await this.#scheduler.waitIdle();
  }

  /**
   * Redis is set back after all servers were answered, told the store how far, and learned it of each other. Those that were
   * killed have told it too: what a server was answered in the second before it was killed, nobody knows.
   */
  async setBack(): Promise<void> {
    await this.end();
    for (const marks of [...this.#marks, ...this.#marks]) {
      await this.#scheduler.waitFor(marks.turn());
    }
    this.redis.setBack();
  }

  #received(id: bigint, above: bigint): void {
    if (this.issued.has(id)) this.repeated.push(id);
    this.issued.add(id);
    if (id <= above) this.inverted.push(`${id} after ${above}`);
    if (id > this.#highest) this.#highest = id;
  }

  #server(): GroupCommit {
    // Time passes whenever it is looked at, so that back-offs end.
    const clock: Clock = { now: () => (this.#nowMs += 5) };
    const timers: Timers = {
      after: (delayMs, run) => {
        let isCancelled = false;
        // Deadlines are not what this is about; short waits are.
        if (delayMs > 1_000) return () => undefined;
        const come = async (): Promise<void> => {
          await this.#step("a timer");
          if (!isCancelled) run();
        };
        void come();
        return () => {
          isCancelled = true;
        };
      },
    };
    const guard = new VersionGuard();
    const { store } = this;
    const raises = new Raises({
      store,
      guard,
      timers,
      storeTimeoutMs: 10_000,
      history: () => 0,
      onWentBack: (_, detail) => expect.fail(detail),
      onBelow: (tag) => expect.fail(tag),
    });
    const redisServer = fakeRedisServer(
      "a",
      () => this.redis,
      (what) => this.#step(what),
      () => {
        const loses = this.#losesAnswer;
        this.#losesAnswer = false;
        return loses;
      },
    );
    const marks = new RedisMarks({
      store,
      storeTimeoutMs: 10_000,
      clock,
      timers,
      afterTurn: (run) => void Promise.resolve().then(run),
      emit: () => undefined,
    });
    this.#marks.push(marks);
    const counter = new RedisSequenceCounter(tagOf(SETTINGS), {
      redisServer: () => redisServer,
      raises,
      readPlace: async (name) => placeOf((await store.getTags([name]))[0]!),
      marks,
      clock,
      timers,
      random: () => 0.5,
      wallClock: () => 0,
      emit: () => undefined,
    });
    return new GroupCommit(
      TAG,
      { maxWaiters: 1_000, maxCount: 10_000 },
      {
        commit: (_, count) => counter.commit(count),
        afterTurn: (run) => void Promise.resolve().then(run),
        clock,
        timers,
      },
    );
  }

  #step(what: string): Promise<void> {
    return this.#scheduler.schedule(Promise.resolve(), what);
  }
}

function ignore(): void {}

function down(): IdmintError {
  return new IdmintError("STORE_UNAVAILABLE", "down", { retryAfterMs: 1 });
}

const commands = fc.oneof(
  { weight: 10, arbitrary: fc.record({ take: fc.nat(2), count: fc.integer({ min: 1, max: 15 }) }) },
  { weight: 7, arbitrary: fc.record({ steps: fc.integer({ min: 1, max: 60 }) }) },
  { weight: 1, arbitrary: fc.record({ replace: fc.nat(2) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      fault: fc.constantFrom(
        "save",
        "save",
        "flush",
        "restart",
        "restart",
        "set-back",
        "set-back",
        "lose",
        "unseeded",
        "down",
        "unheard",
        "up",
        "up",
      ),
    }),
  },
);

type Command =
  | { readonly take: number; readonly count: number }
  | { readonly steps: number }
  | { readonly replace: number }
  | { readonly fault: string };

async function run(world: World, plan: readonly Command[]): Promise<void> {
  await world.begin();
  for (const command of plan) {
    if ("take" in command) world.take(command.take, command.count);
    else if ("steps" in command) await world.some(command.steps);
    else if ("replace" in command) world.replace(command.replace);
    else if (command.fault === "set-back") await world.setBack();
    else disturb(world, command.fault);
  }
  await world.end();
}

function disturb(world: World, fault: string): void {
  if (fault === "save") world.redis.save();
  else if (fault === "flush") world.redis.flush();
  else if (fault === "restart") world.redis.restart();
  else if (fault === "lose") world.loseAnAnswer();
  else if (fault === "unseeded") world.raiseForNobody();
  else world.disturb(({ down: "before", unheard: "after", up: "none" } as const)[fault] ?? "none");
}

test("no id twice and none out of order, whatever Redis and the store do, and it goes on afterwards", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(commands, { minLength: 20, maxLength: 100 }),
      async (scheduler, plan) => {
        const world = new World(scheduler);
        await run(world, plan);
        expect(world.repeated).toEqual([]);
        expect(world.inverted).toEqual([]);
        const floor = world.store.database.rows.get(TAG)?.floor ?? 0n;
        for (const id of world.issued) expect(id).toBeLessThanOrEqual(floor);
        // All is well again: every server is answered, at the second try at the latest, and goes on past the maximum.
        const before = world.issued.size;
        for (const server of [0, 1, 2, 0, 1, 2]) {
          world.take(server, 1);
          await world.end();
        }
        expect(world.issued.size - before).toBeGreaterThanOrEqual(3);
        for (const server of [0, 1, 2]) {
          const had = world.issued.size;
          for (let id = 0; id < 2 * STEP; id += STEP / 4) {
            world.take(server, STEP / 4);
            await world.end();
          }
          expect(world.issued.size - had).toBe(2 * STEP);
        }
        expect(world.repeated).toEqual([]);
        expect(world.inverted).toEqual([]);
        for (const reason of world.refusals) {
          expect(["STORE_UNAVAILABLE", "MAX_NOT_RAISED", "SERVER_UNAVAILABLE"]).toContain(reason);
        }
      },
    ),
    { numRuns: process.env["IDMINT_LONG"] === "1" ? 5_000 : 300 },
  );
});
