// Ticket databases that are real PostgreSQL servers: killed, restored, promoted, and moved between while they issue.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { builtOf } from "@idmint/testkit";
import { IdmintError, idsOf } from "@idmint/core";
import { applyPlan, initialSlots, planTag, survey } from "@idmint/core/server";
import { TestPostgres } from "@idmint/testkit/postgres";
import { afterEach, expect, test } from "vitest";
import { realSystem } from "../../../src/main/system.ts";
import { TicketFleet } from "../../../src/service/tickets/fleet.ts";
import { TicketSlots } from "../../../src/service/tickets/slots.ts";
import {
  accept,
  migrate,
  openTicketDatabases,
  type PostgresTicketDatabase,
  type TicketConfig,
} from "../../../src/store/ticket/backend.ts";
import { until } from "../children.ts";

const ID = "orders.1";
const SLOTS = 12;
const CEILING = 2n ** 63n - 1n;
const NAMES = ["a", "b", "c"];

const undo: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

interface Scene {
  readonly servers: readonly TestPostgres[];
  readonly configs: readonly TicketConfig[];
  readonly databases: readonly PostgresTicketDatabase[];
}

/** Three servers that write to the disk; a tag whose slots lie on the first `made` of them. */
async function sceneOf(made: number, standby = -1): Promise<Scene> {
  const servers = await Promise.all(
    NAMES.map((_, at) => TestPostgres.start({ durable: true, standby: at === standby })),
  );
  undo.push(() => Promise.all(servers.map((server) => server.close())));
  const configs = servers.map((server, at): TicketConfig => {
    const more = { timeoutMs: 1_000, connectTimeoutMs: 1_000, allowUnsafe: [] };
    return { backend: "postgres", name: NAMES[at] ?? "", url: server.url(), ...more };
  });
  for (const config of configs) await migrate(config, { dryRun: false });
  const databases = open(configs);
  const own = initialSlots(SLOTS, made);
  for (const [at, database] of databases.slice(0, made).entries()) {
    await database.make({ slotsId: ID, slots: SLOTS, own: own[at] ?? [], above: 0n });
  }
  return { servers, configs, databases };
}

function open(configs: readonly TicketConfig[]): readonly PostgresTicketDatabase[] {
  const databases = openTicketDatabases(configs);
  undo.push(() => Promise.all(databases.map((database) => database.close())));
  return databases;
}

/** What one server issues. */
class Loader {
  readonly ids: bigint[] = [];
  readonly refused = new Map<string, number>();
  readonly lost: string[] = [];
  readonly #slots: TicketSlots;
  #runs = true;
  #running: Promise<void> = Promise.resolve();

  constructor(configs: readonly TicketConfig[]) {
    const { clock, timers, random } = realSystem;
    const fleet = new TicketFleet({
      databases: open(configs),
      clock,
      timers,
      random,
      timeoutMs: 1_500,
      emit: (event) => {
        if (event.type === "ticket-database-lost") {
          this.lost.push(`${event.database} ${event.error.reason}`);
        }
      },
    });
    this.#slots = new TicketSlots(ID, SLOTS, { fleet, clock, random });
  }

  async load(count: number): Promise<readonly bigint[]> {
    const segments = await this.#slots.load({ count, above: 0n, ceiling: CEILING });
    const ids = [...idsOf(segments)];
    this.ids.push(...ids);
    return ids;
  }

  start(): void {
    const run = async (): Promise<void> => {
      while (this.#runs) {
        try {
          await this.load(20);
        } catch (thrown) {
          const { reason } = IdmintError.from(thrown);
          this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1);
        }
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    };
    this.#running = run();
    undo.push(() => this.stop());
  }

  async stop(): Promise<void> {
    this.#runs = false;
    await this.#running;
  }
}

class MoveChild {
  readonly lines: string[] = [];
  readonly #process: ChildProcess;
  readonly #ended: Promise<void>;

  constructor(configs: readonly TicketConfig[], ...plans: readonly string[]) {
    const file = builtOf("packages/server/test/store/ticket/move-slots-child.ts");
    const args = ["-C", "idmint-source", file, JSON.stringify(configs), ID, ...plans];
    this.#process = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface({ input: this.#process.stdout as NodeJS.ReadableStream });
    lines.on("line", (line) => this.lines.push(line));
    this.#ended = new Promise((resolve) => lines.once("close", resolve));
    undo.push(() => this.kill());
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#ended;
  }
}

function assertNoRepeat(loaders: readonly Loader[]): number {
  const all = loaders.flatMap(({ ids }) => ids);
  expect(new Set(all).size).toBe(all.length);
  return all.length;
}

function highest(loaders: readonly Loader[]): bigint {
  let max = 0n;
  for (const { ids } of loaders) for (const id of ids) if (id > max) max = id;
  return max;
}

async function ownSlots(database: PostgresTicketDatabase): Promise<ReadonlySet<bigint>> {
  const { slots } = await database.list(ID);
  return new Set(slots.filter(({ state }) => state === "active").map(({ slot }) => BigInt(slot)));
}

function ofSlots(ids: readonly bigint[], own: ReadonlySet<bigint>): readonly bigint[] {
  return ids.filter((id) => own.has(id % BigInt(SLOTS)));
}

test("from 2 to 3 databases and back under load, while movers and a database are killed: no repeat", async () => {
  const { servers, configs, databases } = await sceneOf(2);
  const loaders = [new Loader(configs), new Loader(configs)];
  for (const loader of loaders) loader.start();
  await until(() => loaders.every(({ ids }) => ids.length > 500));
  // Two operators at once who want different things, and neither lives long.
  for (const lifeMs of [700, 1_000, 1_300, 900]) {
    const movers = [new MoveChild(configs, "a,b,c", "a,b"), new MoveChild(configs, "b,c", "a,b,c")];
    await until(() => movers.some(({ lines }) => lines.some((line) => line.startsWith("moved"))));
    await new Promise((resolve) => setTimeout(resolve, lifeMs - 600));
    await Promise.all(movers.map((mover) => mover.kill()));
  }
  const mover = new MoveChild(configs, "a,b,c", "a,b");
  await until(() => mover.lines.some((line) => line.startsWith("moved")));
  await servers[1]?.stop("kill");
  const before = loaders.map(({ ids }) => ids.length);
  await until(() => loaders.every(({ ids }, at) => ids.length > (before[at] ?? 0) + 300));
  await servers[1]?.start();
  await until(() => mover.lines.filter((line) => line === "done").length >= 2);
  await mover.kill();
  for (const [to, count] of [
    [["a", "b", "c"], 4],
    [["a", "c"], 6],
  ] as const) {
    await applyPlan(databases, await planTag(databases, ID, to));
    const { holdings } = await survey(databases, ID);
    expect([...holdings.behind]).toEqual([]);
    for (const name of to) {
      const own = [...holdings.owners.values()].filter((owner) => owner === name);
      expect(own).toHaveLength(count);
    }
    const then = loaders.map(({ ids }) => ids.length);
    await until(() => loaders.every(({ ids }, at) => ids.length > (then[at] ?? 0) + 300));
  }
  await Promise.all(loaders.map((loader) => loader.stop()));
  expect(assertNoRepeat(loaders)).toBeGreaterThan(2_000);
  for (const loader of loaders) {
    expect([...loader.refused.keys()].filter((reason) => reason !== "STORE_UNAVAILABLE")).toEqual(
      [],
    );
    expect(loader.lost.filter((line) => !line.endsWith("STORE_UNAVAILABLE"))).toEqual([]);
  }
});

test("a killed database is skipped in time, its slots wait, and it comes back above the fleet's highest id", async () => {
  const { servers, configs, databases } = await sceneOf(3);
  const [, b] = databases;
  if (b === undefined) throw new Error("three databases");
  const own = await ownSlots(b);
  const loaders = [new Loader(configs), new Loader(configs)];
  for (let i = 0; i < 9; i++) for (const loader of loaders) await loader.load(20);
  await servers[1]?.stop("kill");
  const startedAt = performance.now();
  const without: bigint[] = [];
  for (let i = 0; i < 50; i++) {
    for (const loader of loaders) without.push(...(await loader.load(20)));
  }
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  expect(ofSlots(without, own)).toEqual([]);
  await expect(planTag(databases, ID, ["a", "b"])).rejects.toThrow("STORE_UNAVAILABLE");
  expect(await planTag(databases, ID, ["a", "c"])).toMatchObject({ waiting: 4, away: ["b"] });
  await servers[1]?.start();
  const bound = highest(loaders);
  const back: bigint[] = [];
  await until(async () => {
    for (const loader of loaders) back.push(...(await loader.load(20)));
    return ofSlots(back, own).length > 200;
  });
  for (const id of ofSlots(back, own)) expect(id).toBeGreaterThan(bound);
  assertNoRepeat(loaders);
});

test("a database that was frozen costs one load its time-out, and burns what it may have granted", async () => {
  const { servers, configs } = await sceneOf(3);
  const loader = new Loader(configs);
  for (let i = 0; i < 6; i++) await loader.load(10);
  servers[2]?.freeze();
  const waits: number[] = [];
  try {
    for (let i = 0; i < 30; i++) {
      const startedAt = performance.now();
      await loader.load(10);
      waits.push(performance.now() - startedAt);
    }
  } finally {
    servers[2]?.thaw();
  }
  expect(loader.lost).toEqual(["c STORE_UNAVAILABLE"]);
  expect(waits.filter((ms) => ms > 900).length).toBeLessThanOrEqual(2);
  await until(async () => {
    await loader.load(10);
    return loader.ids.length > 600;
  });
  assertNoRepeat([loader]);
});

async function dumpOf(server: TestPostgres, table: string): Promise<string> {
  const rows = await server.query(`SELECT r::text AS row FROM idmint_ticket.${table} AS r`);
  return rows
    .map(
      ({ row }) =>
        `INSERT INTO idmint_ticket.${table} SELECT ($dump$${String(row)}$dump$::idmint_ticket.${table}).*;`,
    )
    .join("\n");
}

test("a database restored from a dump refuses until it is accepted, and then goes on above everything", async () => {
  const { servers, configs, databases } = await sceneOf(3);
  const [a, b, c] = databases;
  const [, server] = servers;
  const [configA, configB, configC] = configs;
  if (!a || !b || !c || !server || !configA || !configB || !configC) throw new Error("three");
  const loaders = [new Loader(configs), new Loader(configs)];
  for (let i = 0; i < 6; i++) for (const loader of loaders) await loader.load(20);
  const dump = `${await dumpOf(server, "database")} ${await dumpOf(server, "slot")}`;
  for (let i = 0; i < 9; i++) for (const loader of loaders) await loader.load(20);
  // After the dump it gave slots away and was given others: both have to be known again.
  await applyPlan(databases, await planTag(databases, ID, ["a", "c"]));
  await applyPlan(databases, await planTag(databases, ID, ["a", "b", "c"]));
  await applyPlan(databases, await planTag(databases, ID, ["b", "c"]));
  for (let i = 0; i < 9; i++) for (const loader of loaders) await loader.load(20);
  const owned = await ownSlots(b);
  await server.query(`BEGIN; TRUNCATE idmint_ticket.database, idmint_ticket.slot; ${dump} COMMIT`);
  const fresh = new Loader(configs);
  loaders.push(fresh);
  const bound = highest(loaders);
  const meanwhile: bigint[] = [];
  for (let i = 0; i < 9; i++) {
    for (const loader of loaders) meanwhile.push(...(await loader.load(20)));
  }
  expect(ofSlots(meanwhile, owned)).toEqual([]);
  expect(fresh.lost).toEqual(["b STORE_EPOCH_CHANGED"]);
  await expect(planTag(databases, ID, ["b", "c"])).rejects.toThrow("STORE_EPOCH_CHANGED");
  expect(await accept(configB, [configA, configC], 5_000n)).toEqual({ slots: owned.size });
  expect(await ownSlots(b)).toEqual(owned);
  const { holdings } = await survey(databases, ID);
  expect([...holdings.behind]).toEqual([]);
  expect(holdings.owners.size).toBe(SLOTS);
  const again: bigint[] = [];
  await until(async () => {
    for (const loader of loaders) again.push(...(await loader.load(20)));
    return ofSlots(again, owned).length > 200;
  });
  for (const id of ofSlots(again, owned)) expect(id).toBeGreaterThan(bound + 5_000n - 100n);
  assertNoRepeat(loaders);
});

test("an acceptance needs every other database", async () => {
  const { servers, configs } = await sceneOf(3);
  const [configA, configB, configC] = configs;
  if (!configA || !configB || !configC) throw new Error("three");
  await servers[2]?.stop("fast");
  await expect(accept(configA, [configB, configC], 1n)).rejects.toThrow(
    "ticket database c did not",
  );
  await servers[2]?.start();
  await accept(configA, [configB, configC], 1n);
});

test("a database promoted to another timeline refuses", async () => {
  const { servers, configs } = await sceneOf(3);
  const loader = new Loader(configs);
  for (let i = 0; i < 3; i++) await loader.load(20);
  const [a] = servers;
  await a?.stop("fast");
  await a?.start({ standby: true });
  await a?.query("SELECT pg_promote()");
  const fresh = new Loader(configs);
  for (let i = 0; i < 9; i++) await fresh.load(20);
  expect(fresh.lost).toEqual(["a STORE_EPOCH_CHANGED"]);
  assertNoRepeat([loader, fresh]);
});

test("a database under another's name is refused", async () => {
  const { configs } = await sceneOf(1);
  const [configA] = configs;
  if (configA === undefined) throw new Error("three");
  const [database] = open([{ ...configA, name: "b" }]);
  await expect(database?.list(ID)).rejects.toThrow("was made as a");
});
