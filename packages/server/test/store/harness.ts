import type { Store } from "@idmint/core/server";
import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterFile } from "@idmint/testkit/after-file";
import { createTestDatabase, type TestDatabase } from "@idmint/testkit/postgres";
import type { StoreHarness } from "@idmint/testkit/store-suite";
import { TcpProxy } from "@idmint/testkit/tcp-proxy";
import {
  addToSpread,
  migrateStore,
  openStore,
  type PostgresConfig,
  type SpreadConfig,
  type SqliteConfig,
} from "../../src/store/open-store.ts";
import { PRESENT_IDENTITY } from "../../src/store/postgres/identity.ts";

const DAY_MS = 86_400_000;
/** A machine that is busy with other tests takes its time, also to open a store. */
const PACE_MS = 10_000;

/** A fresh SQLite store in a folder of its own. */
export interface SqliteHarness extends StoreHarness {
  readonly config: SqliteConfig;
  readonly folder: string;
}

export async function sqliteHarness(more: Partial<SqliteConfig> = {}): Promise<SqliteHarness> {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-store-"));
  const config: SqliteConfig = {
    backend: "sqlite",
    path: path.join(folder, "store.sqlite"),
    create: true,
    timeoutMs: PACE_MS,
    allowUnsafe: [],
    ...more,
  };
  await migrateStore(config, { dryRun: false });
  return {
    config,
    folder,
    open: async (): Promise<Store> => openStore(config),
    shiftPeriods: async (days) => {
      sqlOn(
        config.path,
        `BEGIN IMMEDIATE;
        UPDATE tag SET period_start = date(period_start, '${days} days'),
          other_periods = CASE WHEN other_periods IS NOT NULL THEN
            (SELECT json_group_object(date(key, '${days} days'), value) FROM json_each(other_periods)) END;
        -- In two steps, so that no two rows meet on the way.
        UPDATE period SET start = '+' || date(start, '${days} days'),
          ended_at_ms = ended_at_ms + ${days * DAY_MS};
        UPDATE period SET start = substr(start, 2);
        COMMIT`,
      );
    },
    passWorkers: async (ms) => {
      sqlOn(
        config.path,
        `UPDATE worker SET
          reserved_until_ms = reserved_until_ms - ${ms}, expires_at_ms = expires_at_ms - ${ms}`,
      );
    },
    openCut: async () => {
      const store = await openStore({ ...config, timeoutMs: 100 });
      // Whoever asked is told that it took too long before it sees that it was answered.
      return {
        store,
        cut: () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 110),
      };
    },
    keep: async () => keepFile(config.path),
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** A backup of the file, which lies in its place once it is put back. */
function keepFile(file: string): () => Promise<void> {
  const copy = `${file}.kept`;
  sqlOn(file, `VACUUM INTO '${copy}'`);
  return async () => {
    for (const suffix of ["-wal", "-shm"]) rmSync(`${file}${suffix}`, { force: true });
    renameSync(copy, file);
  };
}

/** Runs statements on a SQLite file, beside whoever has it open: another process would take fifty times as long to start. */
function sqlOn(file: string, sql: string): void {
  const database = new DatabaseSync(file, { timeout: 2_000 });
  try {
    database.exec(sql);
  } finally {
    database.close();
  }
}

const UNSAFE = ["fsync", "full_page_writes"];

/** A database with our schema, which copies of it need not be migrated for: one for each test file that asks. */
let migrated: Promise<TestDatabase> | undefined;

async function migratedDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  afterFile(async () => {
    migrated = undefined;
    await database.close();
  });
  const config: PostgresConfig = { backend: "postgres", url: database.url, allowUnsafe: UNSAFE };
  await migrateStore(config, { dryRun: false });
  return database;
}

/** A database with a store as `migrateStore` leaves it, in a fraction of the time. */
async function databaseWithStore(): Promise<TestDatabase> {
  migrated ??= migratedDatabase();
  const database = await createTestDatabase((await migrated).name);
  // A store of its own, and accepted where it lies.
  await database.query(`UPDATE idmint.store SET store_id = gen_random_uuid(), incarnation = gen_random_uuid(),
    identity = ${PRESENT_IDENTITY}, written_by = pg_current_xact_id()::xid`);
  return database;
}

/** A fresh PostgreSQL store in a database of its own. */
export interface PostgresHarness extends StoreHarness {
  readonly config: PostgresConfig;
  readonly database: TestDatabase;
}

/** `database`: by default one on the server that the run shares, which does without fsync. */
export async function postgresHarness(
  more: Partial<PostgresConfig> = {},
  database?: TestDatabase,
): Promise<PostgresHarness> {
  const its = database ?? (await databaseWithStore());
  const config: PostgresConfig = {
    backend: "postgres",
    url: its.url,
    timeoutMs: PACE_MS,
    connectTimeoutMs: PACE_MS,
    allowUnsafe: UNSAFE,
    ...more,
  };
  if (database !== undefined) await migrateStore(config, { dryRun: false });
  return {
    config,
    database: its,
    open: async (): Promise<Store> => openStore(config),
    shiftPeriods: async (days) => shiftPeriods(its, days),
    passWorkers: async (ms) => passWorkers(its, ms),
    openCut: async () => openCut(config),
    keep: async () => keepTables(its),
    remove: async () => its.close(),
  };
}

async function openCut(config: PostgresConfig): ReturnType<NonNullable<StoreHarness["openCut"]>> {
  const url = new URL(config.url);
  const target = { host: url.hostname, port: Number(url.port) };
  const line = await TcpProxy.start(target);
  url.port = String(line.port);
  url.hostname = "127.0.0.1";
  const store = await openStore({ ...config, url: url.href });
  const close = async (): Promise<void> => {
    await store.close();
    await line.close();
  };
  return { store: { ...store, close }, cut: () => line.pointAt(target) };
}

/** The rows of all tables, which are loaded again as from a dump. */
async function keepTables(database: TestDatabase): Promise<() => Promise<void>> {
  const tables = (
    await database.query("SELECT tablename FROM pg_tables WHERE schemaname = 'idmint'")
  ).map(({ tablename }) => String(tablename));
  const copies = tables.map((table) => `CREATE TABLE kept.${table} AS TABLE idmint.${table};`);
  await database.query(`CREATE SCHEMA kept; ${copies.join(" ")}`);
  const loads = tables.map(
    (table) =>
      `DELETE FROM idmint.${table}; INSERT INTO idmint.${table} OVERRIDING SYSTEM VALUE TABLE kept.${table};`,
  );
  return async () => {
    await database.query(
      `BEGIN; SET LOCAL session_replication_role = replica; ${loads.join(" ")} COMMIT; DROP SCHEMA kept CASCADE`,
    );
  };
}

async function shiftPeriods(database: TestDatabase, days: number): Promise<void> {
  await database.query(`BEGIN;
        UPDATE idmint.tag SET period_start = to_char(period_start::date + (${days}), 'YYYY-MM-DD'),
          other_periods = (SELECT jsonb_object_agg(to_char(key::date + (${days}), 'YYYY-MM-DD'), value)::text
            FROM jsonb_each_text(other_periods::jsonb)),
          written_by = pg_current_xact_id()::xid;
        -- In two steps, so that no two rows meet on the way.
        UPDATE idmint.period SET start = '+' || to_char(start::date + (${days}), 'YYYY-MM-DD'),
          ended_at_ms = ended_at_ms + (${days * DAY_MS});
        UPDATE idmint.period SET start = substr(start, 2);
        COMMIT`);
}

async function passWorkers(database: TestDatabase, ms: number): Promise<void> {
  await database.query(`UPDATE idmint.worker SET reserved_until_ms = reserved_until_ms - ${ms},
        expires_at_ms = expires_at_ms - ${ms}, written_by = pg_current_xact_id()::xid`);
}

/** A fresh store in several databases. */
export interface SpreadHarness extends StoreHarness {
  readonly config: SpreadConfig;
  readonly databases: ReadonlyMap<string, TestDatabase>;
}

/** `databases`: by default `count` of them on the server that the run shares. */
export async function spreadHarness(
  names: readonly string[] = ["default", "b"],
  given: ReadonlyMap<string, TestDatabase> = new Map(),
  more: Partial<PostgresConfig> = {},
): Promise<SpreadHarness> {
  const databases = new Map<string, TestDatabase>();
  const configs = new Map<string, PostgresConfig>();
  for (const name of names) {
    const database = given.get(name) ?? (await databaseWithStore());
    databases.set(name, database);
    configs.set(name, { backend: "postgres", url: database.url, allowUnsafe: UNSAFE, ...more });
  }
  const config: SpreadConfig = { backend: "spread", databases: configs };
  if (given.size > 0) await migrateStore(config, { dryRun: false });
  await addToSpread(config);
  return {
    config,
    databases,
    spreads: true,
    open: async (): Promise<Store> => openStore(config),
    shiftPeriods: async (days) => {
      for (const database of databases.values()) await shiftPeriods(database, days);
    },
    passWorkers: async (ms) => {
      for (const database of databases.values()) await passWorkers(database, ms);
    },
    remove: async () => {
      for (const database of databases.values()) await database.close();
    },
  };
}
