import type { AcceptStore, Store } from "@idmint/core";
import type * as Postgres from "./postgres/backend.ts";
import { checkConfig, type SpreadConfig, type StoreConfig } from "./shared/config.ts";
import { assertGap } from "./shared/limits.ts";
import type { MigrationReport } from "./shared/migration.ts";
import type * as Spread from "./spread/backend.ts";
import type { StoreStatus } from "./shared/status.ts";
import type * as Sqlite from "./sqlite/backend.ts";

export {
  type PostgresConfig,
  type SpreadConfig,
  type SqliteConfig,
  type StoreConfig,
  UNSAFE_SETTINGS,
} from "./shared/config.ts";
export type { Migration, MigrationReport } from "./shared/migration.ts";
export type { StoreStatus } from "./shared/status.ts";
export type { DatabaseStanding } from "./spread/fleet.ts";

/** A backend is loaded when a store of it is used: its driver takes some of the memory of an idle server. */
const sqlite = (): Promise<typeof Sqlite> => import("./sqlite/backend.ts");
const postgres = (): Promise<typeof Postgres> => import("./postgres/backend.ts");
const spread = (): Promise<typeof Spread> => import("./spread/backend.ts");

/**
 * Opens a store that exists and has the schema this release works with. Rejects with SCHEMA_MISMATCH (none, older or
 * newer), STORE_UNSAFE (settings under which ids may repeat) or STORE_UNAVAILABLE. A store that went back opens, and
 * refuses to grant.
 */
export async function openStore(config: StoreConfig): Promise<Store & AcceptStore> {
  checkConfig(config);
  if (config.backend === "sqlite") return (await sqlite()).open(config);
  if (config.backend === "spread") return (await spread()).open(config);
  return (await postgres()).open(config);
}

/**
 * Applies the steps of the schema that the store lacks; with `dryRun` only names them. A SQLite file is made when
 * `create` says so; a PostgreSQL database has to be there.
 */
export async function migrateStore(
  config: StoreConfig,
  options: { dryRun: boolean },
): Promise<MigrationReport> {
  checkConfig(config);
  if (config.backend === "sqlite") return (await sqlite()).migrate(config, options);
  if (config.backend === "spread") return (await spread()).migrate(config, options);
  return (await postgres()).migrate(config, options);
}

/** An accept writes every tag, so it may take longer than what a server waits for. */
const ACCEPT_TIMEOUT_MS = 60_000;

/**
 * Accepts a store as it is, with every floor raised by `gap` ids (0 … 2^63 − 1, at most to the tag's ceiling).
 * `maxOfflineMs`: how long servers whose rows may be lost go on without the store; null: for ever.
 */
export async function acceptStore(
  config: StoreConfig,
  gap: bigint,
  maxOfflineMs?: number | null,
): Promise<{ tags: number }> {
  assertGap(gap);
  const store = await openStore(patient(config));
  try {
    return await store.accept(gap, maxOfflineMs);
  } finally {
    await store.close();
  }
}

/** The same with time for long transactions. */
function patient(config: StoreConfig): StoreConfig {
  if (config.backend !== "spread") return { ...config, timeoutMs: ACCEPT_TIMEOUT_MS };
  return patientSpread(config);
}

function patientSpread({ backend, databases }: SpreadConfig): SpreadConfig {
  const patientOnes = [...databases].map(
    ([name, its]) => [name, { ...its, timeoutMs: ACCEPT_TIMEOUT_MS }] as const,
  );
  return { backend, databases: new Map(patientOnes) };
}

/** Looks at a store without changing it, also at one that a server refuses. */
export async function storeStatus(config: StoreConfig): Promise<StoreStatus> {
  checkConfig(config);
  if (config.backend === "sqlite") return (await sqlite()).status(config);
  if (config.backend === "spread") return (await spread()).status(config);
  return (await postgres()).status(config);
}

/** Looks at the databases that tags are spread over; one that is away does not hide the others. */
export async function spreadStatus(
  config: SpreadConfig,
): Promise<readonly Spread.DatabaseStanding[]> {
  checkConfig(config);
  return (await spread()).spreadStatus(config);
}

/** Makes the databases of a configuration one store, or adds those that are not part of it yet. All have to answer. */
export async function addToSpread(config: SpreadConfig): Promise<{ added: readonly string[] }> {
  checkConfig(config);
  return (await spread()).addToSpread(patientSpread(config));
}

/** Moves a tag to the database `to`, or finishes a move that was interrupted. `moved` is false when it was there. */
export async function moveTagTo(
  config: SpreadConfig,
  tag: string,
  to: string,
): Promise<{ moved: boolean }> {
  checkConfig(config);
  return (await spread()).move(config, tag, to);
}
