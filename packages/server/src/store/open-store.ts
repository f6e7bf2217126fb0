import { randomUUID } from "node:crypto";
import {
  acceptAsking,
  type AcceptReport,
  assertGap,
  type AuditNote,
  checkedCall,
  type Store,
  wrapStore,
} from "@idmint/core/server";
import { invalidField } from "@idmint/core";
import { nodeTimers } from "../timers.ts";
import { lateStore } from "./late-store.ts";
import {
  ACCEPT_TIMEOUT_MS,
  type AcceptOptions,
  checkEtcd,
  checkPostgres,
  checkSqlite,
  type PostgresConfig,
  type SpreadConfig,
  type StoreConfig,
} from "./shared/config.ts";
import { type BackendName, BACKENDS as URL_FORMS } from "./shared/backends.ts";
import { passingPins, type StorePins } from "./pins/pin.ts";
import { withPassword } from "./shared/host-urls.ts";
import type { MigrateOptions, MigrationReport } from "./shared/migration.ts";
import type { StoreStatus } from "./shared/status.ts";
import type { SequenceSeen } from "./takeover/sequences.ts";
import type * as Spread from "./spread/backend.ts";

export type {
  EtcdConfig,
  PostgresConfig,
  SpreadConfig,
  SqliteConfig,
  StoreConfig,
} from "./shared/config.ts";
export { UNSAFE_SETTINGS } from "./shared/backends.ts";
export type { AcceptReport } from "@idmint/core/server";
export type { MigrationReport } from "./shared/migration.ts";
export type { StoreStatus } from "./shared/status.ts";
export type { DatabaseStanding } from "./spread/fleet.ts";
export type { SequenceSeen } from "./takeover/sequences.ts";

/** What a backend's backend.ts exports. */
interface Backend<Its extends StoreConfig> {
  open(config: Its, pins: StorePins): Promise<Store>;
  migrate(config: Its, options: MigrateOptions): Promise<MigrationReport> | MigrationReport;
  status(config: Its): Promise<StoreStatus> | StoreStatus;
}

interface BackendRow<Its extends StoreConfig> {
  /** A backend is loaded when a store of it is used: its driver takes some of the memory of an idle server. */
  readonly load: () => Promise<Backend<Its>>;
  /** Refuses what cannot be meant. */
  readonly check: (config: Its) => void;
  /** The same with another time-out. */
  readonly withTimeout: (config: Its, timeoutMs: number) => Its;
  /** The same, and `migrateStore` may make what is missing. */
  readonly creating: (config: Its) => Its;
  /** The databases of PostgreSQL that it consists of. */
  readonly databasesOf: (config: Its) => readonly PostgresConfig[];
  /** `backend` of its stores. */
  readonly shownAs: BackendName;
}

/** One row for each backend. */
const BACKENDS: {
  readonly [Name in StoreConfig["backend"]]: BackendRow<Extract<StoreConfig, { backend: Name }>>;
} = {
  sqlite: {
    load: () => import("./sqlite/backend.ts"),
    check: checkSqlite,
    withTimeout: (config, timeoutMs) => ({ ...config, timeoutMs }),
    creating: (config) => ({ ...config, create: true }),
    databasesOf: () => [],
    shownAs: "sqlite",
  },
  postgres: {
    load: () => import("./postgres/backend.ts"),
    check: checkPostgres,
    withTimeout: (config, timeoutMs) => ({ ...config, timeoutMs }),
    creating: (config) => config,
    databasesOf: (config) => [config],
    shownAs: "postgres",
  },
  spread: {
    load: loadSpread,
    check: ({ databases }) => databases.forEach(checkPostgres),
    withTimeout: spreadWithTimeout,
    creating: (config) => config,
    databasesOf: ({ databases }) => [...databases.values()],
    shownAs: "postgres",
  },
  etcd: {
    load: () => import("./etcd/backend.ts"),
    check: checkEtcd,
    withTimeout: (config, timeoutMs) => ({ ...config, timeoutMs }),
    creating: (config) => config,
    databasesOf: () => [],
    shownAs: "etcd",
  },
};

/** Only the compiler's view of the table is lost here: the row is that of the configuration's backend. */
function rowOf<Its extends StoreConfig>(config: Its): BackendRow<Its> {
  return BACKENDS[config.backend] as unknown as BackendRow<Its>;
}

async function backendOf<Its extends StoreConfig>(config: Its): Promise<Backend<Its>> {
  const { check, load } = rowOf(config);
  check(config);
  return load();
}

/**
 * Opens a store that exists and has the schema this release works with. Rejects with SCHEMA_MISMATCH (none, older or
 * newer), STORE_UNSAFE (settings under which ids may repeat) or STORE_UNAVAILABLE. A store that went back opens, and
 * refuses to grant. Another store than the pinned one is away. Default: it is the expected one, or stays what it is when it
 * opens.
 */
export async function openStore(
  config: StoreConfig,
  pins: StorePins = passingPins(config.expectId),
): Promise<Store> {
  return wrapStore(await openBackend(config, pins), checkedCall);
}

/** The same store, opened by what is first asked of it when it is there. */
export function openStoreLater(config: StoreConfig, pins: StorePins): Store {
  return lateStore(rowOf(config).shownAs, () => openBackend(config, pins));
}

async function openBackend(config: StoreConfig, pins: StorePins): Promise<Store> {
  return (await backendOf(config)).open(config, pins);
}

/** The same store, which `migrateStore` makes if there is none. A PostgreSQL database has to be there. */
export function creating(config: StoreConfig): StoreConfig {
  return rowOf(config).creating(config);
}

/**
 * Applies the steps of the schema that the store lacks; with `dryRun` only names them. A SQLite file is made when
 * `create` says so; a PostgreSQL database has to be there.
 */
export async function migrateStore(
  config: StoreConfig,
  options: MigrateOptions,
): Promise<MigrationReport> {
  return (await backendOf(config)).migrate(config, options);
}

/**
 * Accepts a store as it is, with every floor raised by `gap` ids (0 … 2^63 − 1, at most to the tag's ceiling) above what the
 * servers that run say they were granted.
 */
export async function acceptStore(
  config: StoreConfig,
  gap: bigint,
  { oldPrimaryIsStopped = false, askTimes: times, ...options }: AcceptOptions = {},
): Promise<AcceptReport> {
  assertGap(gap);
  const { check, databasesOf } = rowOf(config);
  check(config);
  for (const database of databasesOf(config)) {
    const { assertOldPrimaryStopped } = await import("./postgres/backend.ts");
    await assertOldPrimaryStopped(database, oldPrimaryIsStopped);
  }
  const store = await openStore(rowOf(config).withTimeout(config, ACCEPT_TIMEOUT_MS));
  try {
    const clock = { now: () => performance.now() };
    const asking = { store, clock, timers: nodeTimers, nonce: randomUUID(), times };
    return await acceptAsking(asking, { ...options, gap });
  } finally {
    await store.close();
  }
}

/** Looks at a store without changing it, also at one that a server refuses. */
export async function storeStatus(config: StoreConfig): Promise<StoreStatus> {
  return (await backendOf(config)).status(config);
}

/** How far all sequences of any PostgreSQL database have counted. The URL holds no password. */
export async function readSequences(
  url: string,
  password: string | undefined,
): Promise<readonly SequenceSeen[]> {
  if (!URL_FORMS.postgres.isUrl(url)) {
    throw invalidField(
      "PLACE",
      `must be ${URL_FORMS.postgres.form}, with the password in IDMINT_IMPORT_PASSWORD`,
    );
  }
  const sequences = await import("./takeover/sequences.ts");
  const times = { connectTimeoutMs: 5_000, timeoutMs: 60_000 };
  return sequences.readSequences({ url: withPassword(url, password), poolSize: 1, ...times });
}

/** Looks at the databases that tags are spread over; one that is away does not hide the others. */
export async function spreadStatus(
  config: SpreadConfig,
): Promise<readonly Spread.DatabaseStanding[]> {
  return (await spreadOf(config)).spreadStatus(config);
}

/** Makes the databases of a configuration one store, or adds those that are not part of it yet. All have to answer. */
export async function addToSpread(config: SpreadConfig): Promise<{ added: readonly string[] }> {
  return (await spreadOf(config)).addToSpread(spreadWithTimeout(config, ACCEPT_TIMEOUT_MS));
}

/** Moves a tag to the database `to`, or finishes a move that was interrupted. `moved` is false when it was there. */
export async function moveTagTo(
  config: SpreadConfig,
  tag: string,
  to: string,
  by?: AuditNote,
): Promise<{ moved: boolean }> {
  return (await spreadOf(config)).move(config, tag, to, by);
}

async function spreadOf(config: SpreadConfig): Promise<typeof Spread> {
  rowOf(config).check(config);
  return loadSpread();
}

function loadSpread(): Promise<typeof Spread> {
  return import("./spread/backend.ts");
}

function spreadWithTimeout(config: SpreadConfig, timeoutMs: number): SpreadConfig {
  const all = [...config.databases].map(([name, its]) => [name, { ...its, timeoutMs }] as const);
  return { ...config, databases: new Map(all) };
}
