// The database set back under a running fleet: refused before the first new grant, by the servers that ran and by a
// fresh one, until an operator accepts the store with a gap.
import { copyFileSync, existsSync, renameSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { IdmintError } from "@idmint/client";
import { StoreState } from "@idmint/proto";
import { expect, onTestFinished, test } from "vitest";
import { EtcdCluster } from "../../src/etcd/index.ts";
import type { Fleet, FleetServer } from "../../src/fleet/fleet.ts";
import { until } from "../../src/fleet/until.ts";
import type { TestDatabase } from "../../src/postgres.ts";
import { ownPostgres, someOf, sqliteFile, startFleet } from "../fleet-support.ts";
import { dump, load, unused, vacuumInto } from "./set-back.ts";

const TAG = "orders";
/** Segments are small, so that what is in memory is used up soon and every server asks for a new grant. */
const SEGMENT = 20;
/** A change of the store is seen within a second; the rest is for a busy machine. */
const NOTICED_WITHIN_MS = 3_000;

/** Ids that anybody was given so far, and a fault at the first that is given twice. */
class Issued {
  readonly #ids = new Set<bigint>();

  add(ids: readonly bigint[]): void {
    for (const id of ids) {
      if (this.#ids.has(id)) throw new Error(`id ${id} was issued twice`);
      this.#ids.add(id);
    }
  }

  get count(): number {
    return this.#ids.size;
  }
}

async function draw(server: FleetServer, count: number, issued: Issued): Promise<void> {
  const { ids } = await server.api.generateIds({ tag: TAG, count, asList: true });
  issued.add(ids);
}

/** Draws ids one by one until the server refuses; answers how long that took and how many it still gave. */
async function drawUntilRefused(
  server: FleetServer,
  issued: Issued,
): Promise<{ afterMs: number; given: number }> {
  const start = performance.now();
  for (let given = 0; ; given++) {
    try {
      issued.add([await server.api.id(TAG, 5_000)]);
    } catch (thrown) {
      expect(thrown).toBeInstanceOf(IdmintError);
      expect(thrown).toMatchObject({
        code: "FAILED_PRECONDITION",
        reason: "STORE_EPOCH_CHANGED",
      });
      return { afterMs: Math.round(performance.now() - start), given };
    }
    if (performance.now() - start > 10_000) throw new Error(`${server.name} never refuses`);
  }
}

async function expectRefused(server: FleetServer): Promise<void> {
  await expect(server.api.id(TAG)).rejects.toMatchObject({
    code: "FAILED_PRECONDITION",
    reason: "STORE_EPOCH_CHANGED",
  });
  const request = { tag: TAG, count: 1, after: 0n, instance: "" };
  const { ids } = server.api;
  await expect(server.api.send(ids.allocateSegment.bind(ids), request)).rejects.toMatchObject({
    reason: "STORE_EPOCH_CHANGED",
  });
}

/** Whether a server has learned of an accepted store: it issues again. */
async function issuesAgain(server: FleetServer, issued: Issued): Promise<number> {
  const start = performance.now();
  const id = await until(`${server.name} issues again`, () => server.api.id(TAG, 1_000), {
    withinMs: 10_000,
  });
  issued.add([id]);
  return Math.round(performance.now() - start);
}

interface SetBack {
  /** Keeps the store as it is now. Called while the fleet runs and nobody asks for ids. */
  readonly backUp: () => Promise<void>;
  /** Puts the kept state in the place of the present one, under the running fleet. */
  readonly restore: () => Promise<void>;
  /** Whether what it puts there may not fit together, so that nobody can accept it. */
  readonly mayDamage?: boolean;
}

/** The whole story, the same for every store and every way to set it back. */
async function storeGoesBack(
  fleet: Fleet,
  { backUp, restore, mayDamage = false }: SetBack,
): Promise<void> {
  const issued = new Issued();
  await fleet.first.api.createTag({ name: TAG, min: SEGMENT, max: SEGMENT });
  for (const server of fleet.servers) await draw(server, 3, issued);
  // A prefetch that is under way would belong to neither side.
  const kept = await quietFloor(fleet);
  await backUp();
  for (let round = 0; round < 4; round++) {
    for (const server of fleet.servers) await draw(server, SEGMENT + 3, issued);
  }
  const lost = (await quietFloor(fleet)) - kept;
  expect(lost).toBeGreaterThan(0n);
  const before = issued.count;
  await restore();
  const refusals = await Promise.all(
    fleet.servers.map((server) => drawUntilRefused(server, issued)),
  );
  // What they still gave was granted before, and in their memory.
  console.log(`lost grants of ${lost} ids; refused:`, refusals, `given: ${issued.count - before}`);
  for (const { afterMs, given } of refusals) {
    expect(afterMs).toBeLessThan(NOTICED_WITHIN_MS);
    expect(given).toBeLessThanOrEqual(2 * SEGMENT);
  }
  const fresh = await fleet.anotherServer("a fresh server");
  onTestFinished(async () => {
    fresh.api[Symbol.dispose]();
    if (fresh.runs) await fresh.kill();
  });
  const child = fresh.spawn();
  const { nodes } = fresh.api;
  await until(
    "the fresh server answers",
    () => fresh.api.send(nodes.getNodeStatus.bind(nodes), {}),
    { withinMs: 15_000 },
  ).catch((cause: unknown) => {
    throw new Error(child.describe(), { cause });
  });
  const all = [...fleet.servers, fresh];
  for (const server of all) await expectRefused(server);
  const accepted = performance.now();
  const accepting = fleet.cli("store", "accept", "--gap", String(lost), "--yes");
  if (mayDamage && (await isDamaged(accepting))) {
    for (const server of all) await expectRefused(server);
    return;
  }
  await accepting;
  const acceptMs = Math.round(performance.now() - accepted);
  const again = await Promise.all(all.map((server) => issuesAgain(server, issued)));
  console.log(`accepted in ${acceptMs} ms; issuing again after, ms: ${again.join(", ")}`);
  for (const ms of again) expect(ms).toBeLessThan(NOTICED_WITHIN_MS);
  for (const server of all) await draw(server, 3 * SEGMENT, issued);
  expect((await fresh.api.getTag(TAG)).floor).toBeGreaterThan(kept + lost);
}

/** Whether a command says that the store's file is damaged. */
async function isDamaged(command: Promise<unknown>): Promise<boolean> {
  try {
    await command;
    return false;
  } catch (error) {
    expect(String(error)).toContain("the file of the store is damaged");
    return true;
  }
}

/** The floor once no server loads any more. */
async function quietFloor(fleet: Fleet): Promise<bigint> {
  let last = -1n;
  let since = performance.now();
  return until("the store is quiet", async () => {
    const { version, floor } = await fleet.first.api.getTag(TAG);
    if (version !== last) since = performance.now();
    last = version;
    return performance.now() - since > 100 ? floor : undefined;
  });
}

function removeLog(file: string): void {
  for (const suffix of ["-wal", "-shm"]) rmSync(`${file}${suffix}`, { force: true });
}

/** Moves everything from the -wal into the file itself. */
function checkpoint(file: string): void {
  const database = new DatabaseSync(file);
  database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
}

const SQLITE_WAYS: Readonly<Record<string, (file: string, backup: string) => void>> = {
  "written into the same file, its -wal removed": (file, backup) => {
    removeLog(file);
    copyFileSync(backup, file);
  },
  "written into the same file, its -wal left with nothing in it": (file, backup) => {
    checkpoint(file);
    copyFileSync(backup, file);
  },
  "put in its place by rename, its -wal removed": (file, backup) => {
    removeLog(file);
    renameSync(backup, file);
  },
  "put in its place by rename, its -wal left": (file, backup) => {
    renameSync(backup, file);
  },
};

test.for(someOf(2, Object.entries(SQLITE_WAYS)))(
  "a backup of a SQLite file, %s",
  async ([way, restore]) => {
    const file = await sqliteFile();
    const fleet = await startFleet({ servers: 2, storeUrl: `sqlite:${file}` });
    await storeGoesBack(fleet, {
      backUp: async () => vacuumInto(file, `${file}.backup`),
      restore: async () => restore(file, `${file}.backup`),
      // SQLite reads pages of the other history out of a -wal that is not this file's.
      mayDamage: way.endsWith("its -wal left"),
    });
  },
);

test("a copy of a SQLite file and of its -wal, put back together", async () => {
  const file = await sqliteFile();
  const suffixes = ["", "-wal", "-shm"];
  const fleet = await startFleet({ servers: 2, storeUrl: `sqlite:${file}` });
  await storeGoesBack(fleet, {
    backUp: async () => {
      for (const suffix of suffixes) copyFileSync(`${file}${suffix}`, `${file}.backup${suffix}`);
    },
    restore: async () => {
      for (const suffix of suffixes) {
        expect(existsSync(`${file}.backup${suffix}`)).toBe(true);
        renameSync(`${file}.backup${suffix}`, `${file}${suffix}`);
      }
    },
  });
});

test("a SQLite file whose -wal is deleted under the fleet", async () => {
  const file = await sqliteFile();
  const fleet = await startFleet({ servers: 2, storeUrl: `sqlite:${file}` });
  await storeGoesBack(fleet, {
    // What is in the file itself is what remains.
    backUp: async () => checkpoint(file),
    restore: async () => removeLog(file),
  });
});

test("an older SQLite file under a -wal that has every later change loses nothing, and repeats nothing", async () => {
  const file = await sqliteFile();
  const fleet = await startFleet({ servers: 2, storeUrl: `sqlite:${file}` });
  const issued = new Issued();
  await fleet.first.api.createTag({ name: TAG, min: SEGMENT, max: SEGMENT });
  checkpoint(file);
  vacuumInto(file, `${file}.backup`);
  for (const server of fleet.servers) await draw(server, 5 * SEGMENT, issued);
  copyFileSync(`${file}.backup`, file);
  // Whether they go on or refuse, in whatever order: never an id twice.
  for (let round = 0; round < 10; round++) {
    for (const server of fleet.servers) await drawIfAllowed(server, SEGMENT, issued);
  }
  for (const server of fleet.servers) await server.kill();
  for (const server of fleet.servers) server.spawn();
  const { nodes } = fleet.first.api;
  await until("the server answers", () =>
    fleet.first.api.send(nodes.getNodeStatus.bind(nodes), {}),
  );
  for (let round = 0; round < 10; round++) await drawIfAllowed(fleet.first, SEGMENT, issued);
  console.log(`issued ${issued.count} ids`);
  expect(issued.count).toBeGreaterThanOrEqual(10 * SEGMENT);
});

async function drawIfAllowed(server: FleetServer, count: number, issued: Issued): Promise<void> {
  try {
    await draw(server, count, issued);
  } catch (thrown) {
    // One that has just started waits for a proof of its store.
    const reasons = ["STORE_EPOCH_CHANGED", "STORE_UNAVAILABLE"];
    expect(reasons).toContain((thrown as IdmintError).reason);
  }
}

/** What pg_dump writes: the functions, to be made again. */
async function dumpFunctions(database: TestDatabase): Promise<string> {
  const rows = await database.query(
    `SELECT pg_get_functiondef(oid) AS definition FROM pg_proc
    WHERE pronamespace = 'idmint'::regnamespace`,
  );
  return rows.map(({ definition }) => `${String(definition)};`).join("\n");
}

const POSTGRES_WAYS: Readonly<Record<string, (database: TestDatabase) => Promise<SetBack>>> = {
  "its rows loaded from a dump into emptied tables": async (database) => {
    let tables: ReadonlyMap<string, string>;
    return {
      backUp: async () => {
        tables = await dump(database);
      },
      restore: async () => {
        await database.query(
          `BEGIN; TRUNCATE ${[...tables.keys()].map((table) => `idmint.${table}`).join(", ")};
          ${load(tables)}; COMMIT`,
        );
      },
    };
  },
  "the rows of one table loaded from a dump": async (database) => {
    let tables: ReadonlyMap<string, string>;
    return {
      backUp: async () => {
        tables = new Map([...(await dump(database))].filter(([table]) => table === "tag"));
      },
      restore: async () => {
        await database.query(`BEGIN; DELETE FROM idmint.tag; ${load(tables)}; COMMIT`);
      },
    };
  },
  "its schema dropped and made again from a dump": async (database) => {
    let tables: ReadonlyMap<string, string>;
    let functions: string;
    return {
      backUp: async () => {
        tables = await dump(database);
        functions = await dumpFunctions(database);
      },
      restore: async () => {
        // What the dump has of the tables is what they are now.
        const names = [...tables.keys()];
        const like = names.map(
          (table) => `CREATE TABLE made.${table} (LIKE idmint.${table} INCLUDING ALL)`,
        );
        await database.query(
          `BEGIN; CREATE SCHEMA made; ${like.join("; ")}; DROP SCHEMA idmint CASCADE;
          ALTER SCHEMA made RENAME TO idmint; ${functions} ${load(tables)}; COMMIT`,
        );
      },
    };
  },
};

test.for(someOf(2, Object.entries(POSTGRES_WAYS)))("a PostgreSQL database, %s", async ([, way]) => {
  const postgres = await ownPostgres();
  const database = await postgres.createDatabase();
  const fleet = await startFleet({ servers: 2, storeUrl: database.url });
  await storeGoesBack(fleet, await way(database));
});

test("a PostgreSQL database replaced by an older copy of it", async () => {
  const postgres = await ownPostgres();
  const { name, url } = await postgres.createDatabase();
  const fleet = await startFleet({ servers: 2, storeUrl: url });
  await storeGoesBack(fleet, {
    backUp: async () => {
      await unused(postgres, name, `CREATE DATABASE ${name}_backup TEMPLATE ${name}`);
      await until("the servers are back", async () => {
        for (const server of fleet.servers) await server.api.getTag(TAG);
        return true;
      });
    },
    restore: async () => {
      await unused(postgres, name, `ALTER DATABASE ${name} RENAME TO ${name}_gone`);
      await postgres.query(`ALTER DATABASE ${name}_backup RENAME TO ${name}`);
    },
  });
});

test("a PostgreSQL data directory put back in place, on its timeline", async () => {
  const postgres = await ownPostgres();
  const { url } = await postgres.createDatabase();
  const fleet = await startFleet({ servers: 2, storeUrl: url });
  /** Ends once every server has heard of the store again, whatever it thinks of it. */
  const replace = async (putBack: () => void): Promise<void> => {
    await postgres.stop("immediate");
    putBack();
    await postgres.start();
    for (const server of fleet.servers) {
      const { nodes } = server.api;
      await until(`${server.name} has polled`, async () => {
        const { store } = await server.api.send(nodes.getNodeStatus.bind(nodes), {});
        return store?.state !== StoreState.UNREACHABLE;
      });
    }
  };
  let putBack: () => void;
  await storeGoesBack(fleet, {
    backUp: () =>
      replace(() => {
        putBack = postgres.backUp();
      }),
    restore: () => replace(() => putBack()),
  });
});

test("a floor set back by hand, accepted without a gap while its servers run", async () => {
  const database = await (await ownPostgres()).createDatabase();
  const fleet = await startFleet({ servers: 2, storeUrl: database.url });
  const issued = new Issued();
  await fleet.first.api.createTag({ name: TAG, min: SEGMENT, max: SEGMENT });
  for (let round = 0; round < 50; round++) {
    for (const server of fleet.servers) await draw(server, SEGMENT + 3, issued);
  }
  await quietFloor(fleet);
  await database.query(
    "UPDATE idmint.tag SET floor = 10, version = version + 100, written_by = pg_current_xact_id()::xid",
  );
  const told = await fleet.cli("store", "accept", "--gap", "0", "--yes", "--json");
  const { claims } = JSON.parse(told) as { claims: { raisedTags: number; servers: object[] } };
  expect(claims).toMatchObject({ raisedTags: 1 });
  expect(claims.servers).toHaveLength(2);
  for (const server of claims.servers) expect(server).toMatchObject({ told: "all" });
  // A server that knows nothing of before is asked first.
  const fresh = await fleet.anotherServer("a fresh server");
  onTestFinished(async () => {
    fresh.api[Symbol.dispose]();
    if (fresh.runs) await fresh.kill();
  });
  fresh.spawn();
  for (const server of [fresh, ...fleet.servers]) await issuesAgain(server, issued);
  for (let round = 0; round < 20; round++) {
    for (const server of [fresh, ...fleet.servers]) await draw(server, SEGMENT + 3, issued);
  }
});

test("a floor of an etcd set back by hand refuses a fresh server, and is accepted without a gap", async () => {
  const cluster = await EtcdCluster.start();
  onTestFinished(() => cluster.close());
  const fleet = await startFleet({ servers: 2, storeUrl: `etcd://${cluster.hosts}/by-hand` });
  const issued = new Issued();
  await fleet.first.api.createTag({ name: TAG, min: SEGMENT, max: SEGMENT });
  for (let round = 0; round < 50; round++) {
    for (const server of fleet.servers) await draw(server, SEGMENT + 3, issued);
  }
  await quietFloor(fleet);
  const [row] = await cluster.gateway.under(`/by-hand/tag/${TAG}`);
  if (row === undefined) throw new Error("no key of the tag");
  await cluster.gateway.put(
    row.key,
    row.value.replace(/"floor":"[0-9]+"/u, () => `"floor":"10"`),
  );
  // All refuse what they had in memory too, and so does a server that knows nothing of before.
  await Promise.all(fleet.servers.map((server) => drawUntilRefused(server, issued)));
  const fresh = await fleet.anotherServer("a fresh server");
  onTestFinished(async () => {
    fresh.api[Symbol.dispose]();
    if (fresh.runs) await fresh.kill();
  });
  fresh.spawn();
  await until("the fresh server refuses", () => expectRefused(fresh).then(() => true), {
    withinMs: 60_000,
  });
  const told = await fleet.cli("store", "accept", "--gap", "0", "--yes", "--json");
  const { claims } = JSON.parse(told) as { claims: { raisedTags: number; servers: object[] } };
  expect(claims).toMatchObject({ raisedTags: 1 });
  expect(claims.servers.filter((its) => "told" in its && its.told === "all")).toHaveLength(3);
  for (const server of [fresh, ...fleet.servers]) await issuesAgain(server, issued);
  for (let round = 0; round < 20; round++) {
    for (const server of [fresh, ...fleet.servers]) await draw(server, SEGMENT + 3, issued);
  }
  console.log(`${issued.count} ids, none twice`);
});

test("servers that start on a data directory that was put back issue nothing of what others did", async () => {
  const postgres = await ownPostgres();
  const { url } = await postgres.createDatabase();
  const fleet = await startFleet({ servers: 2, storeUrl: url });
  const [live, restarted] = fleet.servers as [FleetServer, FleetServer];
  const issued = new Issued();
  await live.api.createTag({ name: TAG, min: SEGMENT, max: SEGMENT });
  for (const server of fleet.servers) await draw(server, SEGMENT + 3, issued);
  const kept = await quietFloor(fleet);
  await postgres.stop("immediate");
  const putBack = postgres.backUp();
  await postgres.start();
  for (let round = 0; round < 10; round++) {
    for (const server of fleet.servers) {
      await until(`${server.name} issues`, () => server.api.id(TAG, 1_000).then((id) => [id]), {
        withinMs: 15_000,
      }).then((ids) => issued.add(ids));
      await draw(server, SEGMENT, issued);
    }
  }
  const lost = (await quietFloor(fleet)) - kept;
  // The one that knows is too slow to notice before others have started.
  live.process.signal("SIGSTOP");
  await restarted.kill();
  await postgres.stop("immediate");
  putBack();
  await postgres.start();
  const fresh = await fleet.anotherServer("a fresh server");
  onTestFinished(async () => {
    fresh.api[Symbol.dispose]();
    if (fresh.runs) await fresh.kill();
  });
  const newcomers = [restarted, fresh];
  for (const server of newcomers) server.spawn();
  const first = newcomers.map(async (server) =>
    until(
      `${server.name} answers`,
      async () => {
        const answer = await server.api.id(TAG, 1_000).catch((thrown: unknown) => thrown);
        if (typeof answer === "bigint") return `issued ${answer}`;
        const { message } = IdmintError.from(answer);
        return message.includes("has just started") ? message : undefined;
      },
      { withinMs: 30_000 },
    ),
  );
  for (const answer of await Promise.all(first)) expect(answer).toContain("has just started");
  live.process.signal("SIGCONT");
  await drawUntilRefused(live, issued);
  const given: bigint[] = [];
  for (const server of newcomers) {
    await until(`${server.name} refuses the store`, async () => {
      const answer = await server.api.id(TAG, 1_000).catch((thrown: unknown) => thrown);
      if (typeof answer === "bigint") given.push(answer);
      return IdmintError.from(answer).reason === "STORE_EPOCH_CHANGED" ? true : undefined;
    });
  }
  expect(given).toEqual([]);
  await fleet.cli("store", "accept", "--gap", String(lost), "--yes");
  for (const server of [live, ...newcomers]) await issuesAgain(server, issued);
  for (const server of [live, ...newcomers]) await draw(server, 3 * SEGMENT, issued);
}, 120_000);
