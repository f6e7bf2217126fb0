import { FakeTime, MemoryDatabase, MemoryStore } from "@idmint/testkit";
import { settingsOf } from "@idmint/testkit/store-suite";
import fc from "fast-check";
import { expect, test } from "vitest";
import { allowAll } from "../../../src/api/api.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { createServices, type Services } from "../../../src/main/services.ts";
import { realSystem } from "../../../src/main/system.ts";

const config = loadConfig({ defaults: { "store.timeout": "500ms" } });
const SERVERS = 2;
const TAG = "t";

interface Stop {
  readonly revision: bigint;
  /** Above all that was granted before its end. */
  floor: bigint | undefined;
  isConfirmed: boolean;
  isOver: boolean;
}

/**
 * Servers on one store, whose answers come in an order that fast-check chooses, while an operator stops and resumes them.
 * What the rows of the servers say of obedience is held against what callers get.
 */
class World {
  readonly time = new FakeTime();
  readonly faults: string[] = [];
  issued = 0;
  confirmed = 0;
  readonly #database = new MemoryDatabase();
  readonly #operator = new MemoryStore({ database: this.#database });
  readonly #scheduler: fc.Scheduler;
  readonly #servers: Services[] = [];
  readonly #open = new Set<Promise<void>>();
  #stop: Stop | undefined;
  #made = 0;

  constructor(scheduler: fc.Scheduler) {
    this.#scheduler = scheduler;
  }

  async begin(): Promise<void> {
    await this.#operator.createTag(settingsOf(TAG, { min: 5, max: 40, maxAgeMs: 60_000 }));
    for (let at = 0; at < SERVERS; at++) {
      const services = this.#startServer();
      this.#servers.push(services);
      await this.#scheduler.waitFor(services.poll.start());
    }
  }

  #startServer(): Services {
    const { time } = this;
    const arrive = async (what: string): Promise<void> =>
      this.#scheduler.schedule(Promise.resolve(), what);
    const faults = {
      before: (call: string) => arrive(`${call} arrives`),
      after: (call: string) => arrive(`${call} answers`),
    };
    const store = new MemoryStore({ database: this.#database, faults });
    const system = {
      ...realSystem,
      clock: time,
      timers: time,
      afterTurn: (run: () => void) => queueMicrotask(run),
      idleMs: () => time.now(),
      random: () => 0.5,
      randomToken: () => `token-${++this.#made}`,
      wallClock: () => 0,
    };
    return createServices(config, { store, emit: () => undefined, authorise: allowAll, system });
  }

  /** Whether the rows of all servers say that they obeyed the stop. */
  #look(): void {
    const { nodes, rows } = this.#database;
    const stop = this.#stop;
    if (stop === undefined || stop.isConfirmed) return;
    if (nodes.size < SERVERS) return;
    if ([...nodes.values()].some(({ obeyed }) => obeyed < stop.revision)) return;
    stop.isConfirmed = true;
    stop.floor ??= rows.get(TAG)?.floor;
    this.confirmed++;
  }

  generate(at: number): void {
    const services = this.#servers[at % SERVERS];
    if (services === undefined) return;
    this.#look();
    const stop = this.#stop;
    const floor = stop?.isConfirmed === true ? stop.floor : undefined;
    const wasOver = stop?.isOver ?? true;
    const call = { deadline: this.time.now() + 3_000, signal: new AbortController().signal };
    const asked = (async () => {
      const { id } = await services.ids.generateId(TAG, call);
      this.issued++;
      if (floor === undefined || stop === undefined) return;
      if (!wasOver && !stop.isOver) this.faults.push(`${id} was issued while all were stopped`);
      if (id <= floor) this.faults.push(`${id} is from before the stop`);
    })()
      .catch(() => undefined)
      .finally(() => this.#open.delete(asked));
    this.#open.add(asked);
  }

  async set(isStopped: boolean): Promise<void> {
    const [part] = await this.#operator.setIssuing(isStopped);
    const { revision = 0n } = part ?? {};
    const old = this.#stop;
    if (isStopped && (old === undefined || old.isOver)) {
      this.#stop = { revision, floor: undefined, isConfirmed: false, isOver: false };
    } else if (!isStopped && old !== undefined) {
      this.#look();
      old.floor ??= this.#database.rows.get(TAG)?.floor;
      old.isOver = true;
    }
  }

  async settle(): Promise<void> {
    for (const { poll } of this.#servers) poll.stop();
    for (let round = 0; round < 12; round++) {
      while (this.#scheduler.count() > 0) await this.#scheduler.waitNext(1);
      this.time.advance(500);
      await turn();
    }
    await Promise.all(this.#open);
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

type Action = (world: World, scheduler: fc.Scheduler) => unknown;

const actions = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.nat(1).map(
        (at): Action =>
          (world) =>
            world.generate(at),
      ),
    },
    {
      weight: 2,
      arbitrary: fc.boolean().map(
        (is): Action =>
          async (world) =>
            world.set(is),
      ),
    },
    {
      weight: 4,
      arbitrary: fc.constantFrom(60, 400, 1_000).map(
        (ms): Action =>
          (world) =>
            world.time.advance(ms),
      ),
    },
    {
      weight: 10,
      arbitrary: fc.integer({ min: 1, max: 6 }).map((steps): Action => async (_, scheduler) => {
        for (let at = 0; at < steps && scheduler.count() > 0; at++) await scheduler.waitNext(1);
      }),
    },
  ),
  { minLength: 20, maxLength: 80 },
);

test("no call that begins when all servers confirmed a stop is answered from before it, or before its end", async () => {
  const seen = { issued: 0, confirmed: 0 };
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), actions, async (scheduler, all) => {
      const world = new World(scheduler);
      await world.begin();
      for (const act of all) {
        await act(world, scheduler);
        await turn();
      }
      await world.settle();
      seen.issued += world.issued;
      seen.confirmed += world.confirmed;
      expect(world.faults).toEqual([]);
    }),
    { numRuns: 600 },
  );
  // A run in which nothing is issued, or nobody ever obeys, proves nothing.
  expect(seen.issued).toBeGreaterThan(600);
  expect(seen.confirmed).toBeGreaterThan(40);
});
