import { idsOf, type Segment } from "@idmint/core";
import type { Order } from "@idmint/core/kinds";
import type { Grant, GrantRequest } from "@idmint/core/server";
import { FakeTime, MemoryDatabase, type MemorySnapshot, MemoryStore } from "@idmint/testkit";
import fc from "fast-check";
import { expect, test } from "vitest";
import { allowAll } from "../../src/api/api.ts";
import { draining } from "../../src/api/draining.ts";
import { loadConfig } from "../../src/config/load.ts";
import { createServices, type Services } from "../../src/main/services.ts";
import { realSystem } from "../../src/main/system.ts";
import type { Patience } from "../../src/service/call.ts";

/**
 * A store that grants whatever it is asked for: only the server's own guard can notice that it went back. It notices it
 * by the versions of answers, so with this store every answer is heard.
 */
function trusting(store: MemoryStore): MemoryStore {
  const { grant } = store;
  return Object.assign(store, {
    grant: (requests: readonly GrantRequest[]): Promise<readonly Grant[]> =>
      grant(requests.map((request) => ({ ...request, seenVersion: 0n }))),
  });
}

const TAG = "t";
const config = loadConfig({ defaults: { "store.timeout": "500ms", ledger: "off" } });
/** More than all ids of one run, so that an accepted store cannot repeat any. */
const GAP = 1_000_000n;

/**
 * One server over a store that fails, answers late, answers and is not heard, goes back and is accepted, in an order
 * that fast-check chooses. Every id a caller got is remembered; none may come twice.
 */
class World {
  readonly time = new FakeTime();
  readonly issued = new Set<bigint>();
  /** Ids that others got, or this server before it was restarted. It cannot know of them once the store goes back. */
  readonly #others = new Set<bigint>();
  readonly repeated: bigint[] = [];
  /** Ids that were not above what their caller named. */
  readonly disordered: bigint[] = [];
  readonly #database = new MemoryDatabase();
  readonly #scheduler: fc.Scheduler;
  readonly #isTrusting: boolean;
  readonly #allocations: { token: string; segments: readonly Segment[]; released: boolean }[] = [];
  #snapshots: MemorySnapshot[] = [];
  #services: Services;
  #store: MemoryStore;
  #fault: "none" | "before" | "after" = "none";
  /** The store went back and was not accepted since: a server without memory would repeat ids now. */
  #isBehind = false;
  #isAlone = false;
  #made = 0;

  /** Of a PER_CLIENT tag: the highest id the one caller that allocates got. */
  #after = 0n;
  readonly #order: Order;

  constructor(scheduler: fc.Scheduler, isTrusting: boolean, order: Order) {
    this.#order = order;
    this.#scheduler = scheduler;
    this.#isTrusting = isTrusting;
    [this.#store, this.#services] = this.#startServer();
  }

  async begin(): Promise<void> {
    const kind = {
      kind: "segment" as const,
      start: 1n,
      min: 5,
      max: 40,
      holdForMs: 1_000,
      maxAgeMs: 60_000,
    };
    const settings = {
      name: TAG,
      description: "",
      order: this.#order,
      ceiling: 2n ** 62n,
      kind,
    };
    await new MemoryStore({ database: this.#database }).createTag(settings);
    await this.#scheduler.waitFor(this.#services.poll.start());
  }

  #startServer(): [MemoryStore, Services] {
    const { time } = this;
    const options = { database: this.#database };
    const store = this.#isTrusting ? trusting(new MemoryStore(options)) : new MemoryStore(options);
    store.faults = {
      before: async (operation) => {
        await this.#scheduler.schedule(Promise.resolve(), `${operation} arrives`);
        if (operation !== "grant" || this.#fault !== "before") return;
        this.#fault = "none";
        throw new Error("not done");
      },
      after: async (operation) => {
        const isUnheard = operation === "grant" && this.#fault === "after";
        if (isUnheard) this.#fault = "none";
        await this.#scheduler.schedule(Promise.resolve(), `${operation} answers`);
        if (isUnheard) throw new Error("done, and not heard");
      },
    };
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
    const ports = { store, emit: () => undefined, authorise: allowAll, system };
    const services = createServices(config, ports);
    return [store, services];
  }

  #call(): Patience {
    return { deadline: this.time.now() + 3_000, signal: new AbortController().signal };
  }

  #issue(ids: Iterable<bigint>): void {
    for (const id of ids) {
      if (this.issued.has(id) || this.#others.has(id)) this.repeated.push(id);
      this.issued.add(id);
    }
  }

  async #take(
    work: () => { readonly ids: Iterable<bigint> } | Promise<{ readonly ids: Iterable<bigint> }>,
  ) {
    try {
      this.#issue((await work()).ids);
    } catch {
      // Refusals are fine; repeats are not.
    }
  }

  generate(): void {
    void this.#take(async () => ({
      ids: [(await this.#services.ids.generateId(TAG, this.#call())).id],
    }));
  }

  takeMany(count: number): void {
    const request = { tag: TAG, count, asList: true };
    void this.#take(() => this.#services.ids.generateIds(request, this.#call()));
  }

  allocate(count: number): void {
    void this.#take(async () => {
      const after = this.#order === "PER_CLIENT" ? this.#after : 0n;
      const request = { tag: TAG, count, after };
      const { segments, releaseToken } = await this.#services.ids.allocateSegment(
        request,
        this.#call(),
      );
      for (const id of idsOf(segments)) {
        if (id <= after) this.disordered.push(id);
        if (id > this.#after) this.#after = id;
      }
      this.#allocations.push({ token: releaseToken, segments, released: false });
      return { ids: idsOf(segments) };
    });
  }

  /** A caller gives the end of an allocation back, perhaps a second time. */
  release(at: number, share: number): void {
    const allocation = this.#allocations[at % Math.max(1, this.#allocations.length)];
    if (allocation === undefined || allocation.token === "") return;
    const ids = [...idsOf(allocation.segments)];
    const unusedCount = Math.max(1, Math.floor((ids.length * share) / 100));
    const request = { tag: TAG, releaseToken: allocation.token, unusedCount };
    // Without a ledger it is answered at once.
    const reclaimed = Number(this.#services.ids.releaseSegment(request));
    expect(allocation.released && reclaimed > 0).toBe(false);
    allocation.released = true;
    if (reclaimed > 0) for (const id of ids.slice(-unusedCount)) this.issued.delete(id);
  }

  fail(how: "before" | "after"): void {
    this.#fault = this.#isTrusting ? "before" : how;
  }

  async advance(ms: number): Promise<void> {
    while (this.#isTrusting && this.#scheduler.count() > 0) await this.#scheduler.waitNext(1);
    this.time.advance(ms);
  }

  snapshot(): void {
    this.#snapshots.push(this.#database.snapshot());
  }

  goBack(at: number): void {
    const snapshot = this.#snapshots[at % Math.max(1, this.#snapshots.length)];
    if (snapshot === undefined) return;
    this.#database.restoreRow(snapshot, TAG);
    this.#others.clear();
    this.#isBehind = true;
  }

  /** Without a gap only this server knows what was granted; another one would repeat it until it was heard. */
  async accept(gap: bigint): Promise<void> {
    if (!this.#isBehind) return;
    await new MemoryStore({ database: this.#database }).accept(gap);
    this.#isBehind = false;
    if (gap < GAP) this.#isAlone = true;
    // A backup from before the accept would need a larger gap.
    this.#snapshots = [];
  }

  /** Another server on the same store. It has no memory, so it must not come while the store is behind. */
  async othersTake(): Promise<void> {
    if (this.#isBehind || this.#isAlone) return;
    const other = new MemoryStore({ database: this.#database });
    const request = { kind: "segment", count: 7, minCount: 1, after: 0n, seenVersion: 0n } as const;
    const [grant] = await other.grant([{ tag: TAG, ...request }]);
    if (grant?.outcome !== "granted") return;
    for (const id of idsOf([{ ...grant, increment: 1 }])) {
      if (this.issued.has(id) || this.#others.has(id)) this.repeated.push(id);
      this.#others.add(id);
    }
  }

  /** An operator drains the server, which gives back while calls and loads may be under way, or undrains it. */
  drain(isDraining: boolean): void {
    if (this.#isBehind) return;
    // Polls say the same from now on.
    this.#database.traffic = [{ server: "", weight: 100, isDraining, revision: 1n }];
    this.#services.drain.told(isDraining);
  }

  /** Stops, gives back, starts anew. */
  async restart(): Promise<void> {
    if (this.#isBehind || this.#isAlone) return;
    this.#services.poll.stop();
    const drained = this.#services.directory.drain(draining("stopping"));
    await this.#scheduler.waitFor(drained);
    this.#allocations.length = 0;
    for (const id of this.issued) this.#others.add(id);
    this.issued.clear();
    [this.#store, this.#services] = this.#startServer();
    await this.#scheduler.waitFor(this.#services.poll.start());
  }

  /** Nothing fails any more: everything that is under way ends. */
  async settle(): Promise<void> {
    this.#database.traffic = [];
    for (let round = 0; round < 12; round++) {
      while (this.#scheduler.count() > 0) await this.#scheduler.waitNext(1);
      this.time.advance(500);
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    this.#services.poll.stop();
    while (this.#scheduler.count() > 0) await this.#scheduler.waitNext(1);
    void this.#store.close();
  }
}

type Action = (world: World, scheduler: fc.Scheduler) => unknown;

function weighted(weight: number, arbitrary: fc.Arbitrary<Action>) {
  return { weight, arbitrary };
}

const action: fc.Arbitrary<Action> = fc.oneof(
  weighted(
    6,
    fc.constant((world: World) => world.generate()),
  ),
  weighted(
    3,
    fc.integer({ min: 1, max: 60 }).map((count) => (world: World) => world.takeMany(count)),
  ),
  weighted(
    3,
    fc.integer({ min: 1, max: 30 }).map((count) => (world: World) => world.allocate(count)),
  ),
  weighted(
    2,
    fc.tuple(fc.nat(5), fc.integer({ min: 1, max: 100 })).map(
      ([at, share]) =>
        (world: World) =>
          world.release(at, share),
    ),
  ),
  weighted(
    2,
    fc
      .constantFrom("before" as const, "after" as const)
      .map((how) => (world: World) => world.fail(how)),
  ),
  weighted(
    3,
    fc.constant((world: World) => world.snapshot()),
  ),
  weighted(
    2,
    fc.nat(5).map((at) => (world: World) => world.goBack(at)),
  ),
  weighted(
    1,
    fc.constantFrom(0n, 3n, GAP).map((gap) => (world: World) => world.accept(gap)),
  ),
  weighted(
    1,
    fc.constant((world: World) => world.othersTake()),
  ),
  weighted(
    1,
    fc.constant((world: World) => world.restart()),
  ),
  weighted(
    2,
    fc.boolean().map((isDraining) => (world: World) => world.drain(isDraining)),
  ),
  weighted(
    4,
    fc.constantFrom(10, 60, 400, 1_200).map((ms) => (world: World) => world.advance(ms)),
  ),
  weighted(
    8,
    fc.integer({ min: 1, max: 4 }).map((steps) => async (_: World, scheduler: fc.Scheduler) => {
      for (let at = 0; at < steps && scheduler.count() > 0; at++) await scheduler.waitNext(1);
    }),
  ),
);

test.each([
  ["that checks versions", false],
  ["that trusts its callers", true],
])("no id comes twice, whatever a store %s does", async (_, isTrusting) => {
  let issued = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.constantFrom<Order>("UNORDERED", "PER_CLIENT"),
      fc.array(action, { minLength: 5, maxLength: 60 }),
      async (scheduler, order, actions) => {
        const world = new World(scheduler, isTrusting, order);
        await world.begin();
        for (const act of actions) {
          await act(world, scheduler);
          await new Promise((resolve) => {
            setImmediate(resolve);
          });
        }
        await world.settle();
        issued += world.issued.size;
        expect(world.repeated).toEqual([]);
        expect(world.disordered).toEqual([]);
      },
    ),
    { numRuns: 1_500 },
  );
  // A run in which everything is refused proves nothing.
  expect(issued).toBeGreaterThan(1_000);
});
