import { IdmintError, idsOf } from "@idmint/core";
import { applyPlan, initialSlots, planTag, survey, type TicketDatabase } from "@idmint/core/server";
import { FakeTime, MemoryTicketDatabase } from "@idmint/testkit";
import fc from "fast-check";
import { expect, test } from "vitest";
import { TicketFleet } from "../../../src/service/tickets/fleet.ts";
import { TicketSlots } from "../../../src/service/tickets/slots.ts";

const ID = "t.1";
const SLOTS = 7;
const CEILING = 2n ** 63n - 1n;

type Step =
  | { do: "load"; server: number; count: number }
  | { do: "restart"; server: number }
  | { do: "stop"; database: number }
  | { do: "start"; database: number }
  | { do: "move"; to: readonly string[]; crashAfter: number }
  | { do: "advance"; by: number }
  | { do: "wait"; ms: number };

const targets = fc.constantFrom(["a", "b"], ["a", "b", "c"], ["b", "c"], ["c"]);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant("load" as const),
      server: fc.nat(1),
      count: fc.integer({ min: 1, max: 400 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("move" as const),
      to: targets,
      crashAfter: fc.oneof(fc.nat(40), fc.constant(10_000)),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom("stop" as const, "start" as const),
      database: fc.nat(2),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("restart" as const), server: fc.nat(1) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("advance" as const), by: fc.nat(500) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.nat(15_000) }) },
);

/** What becomes of one call to a database, besides being scheduled at any time. */
type Fate = "ok" | "lost";

/** Databases behind a network that delays, and loses answers. */
class World {
  readonly time = new FakeTime();
  readonly databases = ["a", "b", "c"].map((name) => new MemoryTicketDatabase(name));
  readonly received = new Set<bigint>();
  readonly #scheduler: fc.Scheduler;
  readonly #fates: readonly Fate[];
  #calls = 0;
  readonly servers: TicketSlots[] = [];
  above = 0n;

  constructor(scheduler: fc.Scheduler, fates: readonly Fate[]) {
    this.#scheduler = scheduler;
    this.#fates = fates;
    for (const at of [0, 1]) this.restart(at);
  }

  restart(server: number): void {
    const databases = this.databases.map((database) => this.#over(database, () => undefined));
    const ports = { clock: this.time, timers: this.time, random: () => 0.5 };
    const fleet = new TicketFleet({ databases, ...ports, timeoutMs: 1_000, emit: () => undefined });
    this.servers[server] = new TicketSlots(ID, SLOTS, { fleet, ...ports });
  }

  async load(server: number, count: number): Promise<void> {
    const { above } = this;
    const segments = await this.servers[server]?.load({ count, above, ceiling: CEILING });
    for (const id of idsOf(segments ?? [])) {
      if (this.received.has(id)) throw new Error(`id ${id} twice`);
      if (id <= above) throw new Error(`id ${id} under the floor ${above}`);
      this.received.add(id);
    }
  }

  /** One operator, whose process ends after so many calls. */
  async move(to: readonly string[], crashAfter: number): Promise<void> {
    let calls = 0;
    const crash = (): void => {
      if (calls++ >= crashAfter) throw new IdmintError("CALL_CANCELLED", "the operator is gone");
    };
    const databases = this.databases.map((database) => this.#over(database, crash));
    await applyPlan(databases, await planTag(databases, ID, to));
  }

  /** Never more than one database that may issue from a slot. */
  async assertOneOwner(): Promise<void> {
    const active = new Set<number>();
    for (const database of this.databases) {
      for (const { slot, state, owner } of database.slots(ID)) {
        if (state !== "active") continue;
        if (active.has(slot)) throw new Error(`slot ${slot} has two owners`);
        expect(owner).toBe(database.databaseId);
        active.add(slot);
      }
    }
  }

  #over(database: MemoryTicketDatabase, before: () => void): TicketDatabase {
    const call = async <T>(label: string, work: () => Promise<T>): Promise<T> => {
      before();
      const fate = this.#fates[this.#calls++ % this.#fates.length];
      await this.#scheduler.schedule(Promise.resolve(), `${label} to ${database.name}`);
      const answer = await work();
      await this.assertOneOwner();
      await this.#scheduler.schedule(Promise.resolve(), `${label} from ${database.name}`);
      if (fate === "lost") throw new IdmintError("STORE_UNAVAILABLE", "the answer was lost");
      return answer;
    };
    return {
      name: database.name,
      list: (id) => call("list", () => database.list(id)),
      listSlotsIds: (query) => call("ids", () => database.listSlotsIds(query)),
      make: (request) => call("make", () => database.make(request)),
      raise: (request) => call("raise", () => database.raise(request)),
      grant: (request) => call("grant", () => database.grant(request)),
      freeze: (request) => call("freeze", () => database.freeze(request)),
      adopt: (request) => call("adopt", () => database.adopt(request)),
      forget: (request) => call("forget", () => database.forget(request)),
      confirm: (request) => call("confirm", () => database.confirm(request)),
    };
  }
}

async function make(databases: readonly TicketDatabase[], slots = SLOTS): Promise<void> {
  const own = initialSlots(slots, databases.length);
  for (const [at, database] of databases.entries()) {
    await database.make({ slotsId: ID, slots, own: own[at] ?? [], above: 0n });
  }
}

test("whatever moves, dies, comes back and is lost, no id is repeated and no slot has two owners", async () => {
  const seen = { moves: 0, loads: 0, ids: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(fc.oneof({ weight: 9, arbitrary: fc.constant<Fate>("ok") }, fc.constant("lost")), {
        minLength: 1,
        maxLength: 40,
      }),
      fc.array(step, { minLength: 5, maxLength: 50 }),
      fc.boolean(),
      async (scheduler, fates, steps, inTurn) => {
        const world = new World(scheduler, fates);
        await make(world.databases.slice(0, 2));
        const runs: Promise<void>[] = [];
        const failures: unknown[] = [];
        for (const each of steps) {
          const act = async (): Promise<void> => {
            try {
              if (each.do === "load") {
                await world.load(each.server, each.count);
                seen.loads++;
              } else if (each.do === "restart") world.restart(each.server);
              else if (each.do === "stop") world.databases[each.database]?.stop();
              else if (each.do === "start") world.databases[each.database]?.start();
              else if (each.do === "wait") world.time.advance(each.ms);
              else if (each.do === "advance") world.above += BigInt(each.by);
              else {
                await world.move(each.to, each.crashAfter);
                seen.moves++;
              }
            } catch (error) {
              const isRefusal = error instanceof IdmintError && error.code !== "INTERNAL";
              // Nothing ever went back, so nobody may be taken for it.
              if (!isRefusal || error.reason === "STORE_EPOCH_CHANGED") failures.push(error);
            }
          };
          runs.push(scheduler.schedule(Promise.resolve(), each.do).then(act));
          // Each after the other has ended, or all at once.
          if (inTurn) await scheduler.waitIdle();
        }
        await scheduler.waitIdle();
        // A load that lost its answers waits for nothing, so all end.
        await Promise.all(runs);
        expect(failures).toEqual([]);
        for (const database of world.databases) database.start();
        await applyPlan(world.databases, await planTag(world.databases, ID, ["a", "b", "c"]));
        const { holdings } = await survey(world.databases, ID);
        expect(holdings.owners.size).toBe(SLOTS);
        expect(holdings.pending).toEqual([]);
        expect((await planTag(world.databases, ID, ["a", "b", "c"])).moves).toEqual([]);
        await world.assertOneOwner();
        seen.ids += world.received.size;
      },
    ),
    { numRuns: 1_500 },
  );
  expect(seen.moves).toBeGreaterThan(100);
  expect(seen.loads).toBeGreaterThan(1_000);
  expect(seen.ids).toBeGreaterThan(50_000);
});

/** A server over three databases, and what it is told of their health. */
async function server(databases: readonly MemoryTicketDatabase[], random = 0.5) {
  const time = new FakeTime();
  const lost: string[] = [];
  const ports = { clock: time, timers: time, random: () => random };
  const fleet = new TicketFleet({
    databases,
    ...ports,
    timeoutMs: 1_000,
    emit: (event) => {
      if (event.type === "ticket-database-lost") lost.push(event.database);
      if (event.type === "ticket-database-back") lost.push(`${event.database} back`);
    },
  });
  const slots = new TicketSlots(ID, SLOTS, { fleet, ...ports });
  const load = async (count: number, above = 0n, ceiling = CEILING): Promise<readonly bigint[]> => [
    ...idsOf(await slots.load({ count, above, ceiling })),
  ];
  return { time, lost, load, fleet };
}

async function three(): Promise<readonly MemoryTicketDatabase[]> {
  const databases = ["a", "b", "c"].map((name) => new MemoryTicketDatabase(name));
  await make(databases);
  return databases;
}

function max(ids: readonly bigint[]): bigint {
  return ids.reduce((highest, id) => (id > highest ? id : highest), 0n);
}

test("a dead database is left alone for its back-off time, and comes back above the fleet's highest id", async () => {
  const databases = await three();
  const { time, lost, load, fleet } = await server(databases);
  const [, b] = databases;
  const own = new Set(b?.slots(ID).map(({ slot }) => BigInt(slot)));
  const failures = (): number => fleet.all().reduce((sum, each) => sum + each.failures, 0);
  b?.stop();
  const before: bigint[] = [];
  for (let i = 0; i < 30; i++) before.push(...(await load(20)));
  expect([lost, failures()]).toEqual([["b"], 1]);
  time.advance(500);
  for (let i = 0; i < 30; i++) before.push(...(await load(20)));
  expect([lost, failures()]).toEqual([["b"], 2]);
  expect(before.some((id) => own.has(id % BigInt(SLOTS)))).toBe(false);
  b?.start();
  before.push(...(await load(20)));
  expect(lost).toEqual(["b"]);
  time.advance(10_000);
  const after: bigint[] = [];
  for (let i = 0; i < 3; i++) after.push(...(await load(20)));
  expect(lost).toEqual(["b", "b back"]);
  const fromB = after.filter((id) => own.has(id % BigInt(SLOTS)));
  expect(fromB).toHaveLength(20);
  for (const id of fromB) expect(id).toBeGreaterThan(max(before));
});

test("a database that was restarted unnoticed issues nothing before its slots are raised", async () => {
  const databases = await three();
  const busy = await server(databases.slice(0, 1));
  const quiet = await server(databases);
  await quiet.load(1);
  await quiet.load(1);
  const high = max(await busy.load(5_000));
  databases[1]?.stop();
  databases[1]?.start();
  const own = new Set(databases[1]?.slots(ID).map(({ slot }) => BigInt(slot)));
  const ids: bigint[] = [];
  for (let i = 0; i < 3; i++) ids.push(...(await quiet.load(1)));
  const fromB = ids.filter((id) => own.has(id % BigInt(SLOTS)));
  expect(fromB).toHaveLength(1);
  expect(fromB[0]).toBeGreaterThan(high);
});

test("a slot that moves to a database without any goes on above what it issued, within ten seconds", async () => {
  const databases = ["a", "b", "c"].map((name) => new MemoryTicketDatabase(name));
  await make(databases.slice(0, 2));
  const { time, load } = await server(databases);
  const ids: bigint[] = [];
  for (let i = 0; i < 6; i++) ids.push(...(await load(100)));
  await applyPlan(databases, await planTag(databases, ID, ["a", "b", "c"]));
  const moved = new Set(databases[2]?.slots(ID).map(({ slot }) => BigInt(slot)));
  expect(moved.size).toBe(2);
  const bound = max(ids);
  time.advance(10_000);
  const after: bigint[] = [];
  for (let i = 0; i < 6; i++) after.push(...(await load(100)));
  const fromC = after.filter((id) => moved.has(id % BigInt(SLOTS)));
  expect(fromC).toHaveLength(200);
  for (const id of fromC) expect(id).toBeGreaterThan(bound);
  const all = [...ids, ...after];
  expect(new Set(all).size).toBe(all.length);
});

test("without a database that answers a load is refused, with the time to come back", async () => {
  const databases = await three();
  const { load } = await server(databases);
  for (const database of databases) database.stop();
  const error = await load(1).catch((thrown: unknown) => thrown as IdmintError);
  expect(error).toMatchObject({ reason: "STORE_UNAVAILABLE", code: "UNAVAILABLE" });
  expect((error as IdmintError).retryAfterMs).toBeGreaterThan(0);
  const none = await (await server([])).load(1).catch((thrown: unknown) => thrown as IdmintError);
  expect((none as IdmintError).message).toContain("ticket.urls");
});

test("after its advance a tag issues nothing under the new floor", async () => {
  const { load } = await server(await three());
  for (let i = 0; i < 3; i++) await load(10);
  for (let i = 0; i < 6; i++) {
    for (const id of await load(10, 1_000n)) expect(id).toBeGreaterThan(1_000n);
  }
});

test("all ids up to the ceiling come, each once, and then the tag is exhausted", async () => {
  const { load } = await server(await three());
  const ids: bigint[] = [];
  const ceiling = 100n;
  let error: unknown;
  while (error === undefined && ids.length <= 100) {
    try {
      ids.push(...(await load(9, 0n, ceiling)));
    } catch (thrown) {
      error = thrown;
    }
  }
  expect(error).toMatchObject({ reason: "TAG_EXHAUSTED" });
  expect(ids.toSorted((x, y) => Number(x - y))).toEqual(
    Array.from({ length: 100 }, (_, at) => BigInt(at + 1)),
  );
});

test("a database put back to an older state is refused by who saw more, until it is accepted", async () => {
  const databases = await three();
  const { load, lost, time } = await server(databases);
  const [, b] = databases;
  for (let i = 0; i < 3; i++) await load(10);
  const restore = b?.backup();
  const own = new Set(b?.slots(ID).map(({ slot }) => BigInt(slot)));
  const taken = new Set<bigint>();
  for (let i = 0; i < 9; i++) for (const id of await load(50)) taken.add(id);
  restore?.(false);
  for (let i = 0; i < 9; i++) {
    time.advance(4_000);
    for (const id of await load(50)) {
      expect(taken.has(id)).toBe(false);
      expect(own.has(id % BigInt(SLOTS))).toBe(false);
    }
  }
  expect(lost).toEqual(["b"]);
});

test("a database that forgot that it gave a slot away is refused by everybody", async () => {
  const databases = await three();
  const [a, b, c] = databases;
  if (a === undefined || b === undefined || c === undefined) throw new Error("three");
  const own = new Set(a.slots(ID).map(({ slot }) => BigInt(slot)));
  const restore = a.backup();
  await applyPlan(databases, await planTag(databases, ID, ["b", "c"]));
  restore(false);
  const fresh = await server(databases);
  for (let i = 0; i < 9; i++) {
    const health = fresh.fleet.next(new Set(["b", "c"]));
    expect(health === undefined || health.name === "a").toBe(true);
    await fresh.load(10);
  }
  expect(fresh.lost).toEqual(["a"]);
  await expect(planTag(databases, ID, ["a", "b"])).rejects.toThrow("went back");
  // The slots themselves go on at their new owners.
  const ids: bigint[] = [];
  for (let i = 0; i < 4; i++) ids.push(...(await fresh.load(400)));
  expect(ids.some((id) => own.has(id % BigInt(SLOTS)))).toBe(true);
});

test("a database that forgot what it was given is refused, and gets nothing a second time", async () => {
  const databases = await three();
  const c = databases[2];
  const restore = c?.backup();
  await applyPlan(databases, await planTag(databases, ID, ["c"]));
  restore?.(false);
  await expect(planTag(databases, ID, ["c"])).rejects.toThrow("it has lost slot");
  const { load } = await server(databases);
  await expect(load(1)).rejects.toThrow(/went back/);
});
