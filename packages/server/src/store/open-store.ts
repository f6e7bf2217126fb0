import type { AcceptStore, Store } from "@idmint/core";
import type * as Postgres from "./postgres/backend.ts";
import { checkConfig, type StoreConfig } from "./shared/config.ts";
import { assertGap } from "./shared/limits.ts";
import type { MigrationReport } from "./shared/migration.ts";
import type { StoreStatus } from "./shared/status.ts";
import type * as Sqlite from "./sqlite/backend.ts";

export {
  type PostgresConfig,
  type SqliteConfig,
  type StoreConfig,
  UNSAFE_SETTINGS,
} from "./shared/config.ts";
export type { Migration, MigrationReport } from "./shared/migration.ts";
export type { StoreStatus } from "./shared/status.ts";

/** A backend is loaded when a store of it is used: its driver takes some of the memory of an idle server. */
const sqlite = (): Promise<typeof Sqlite> => import("./sqlite/backend.ts");
const postgres = (): Promise<typeof Postgres> => import("./postgres/backend.ts");

/**
 * Opens a store that exists and has the schema this release works with. Rejects with SCHEMA_MISMATCH (none, older or
 * newer), STORE_UNSAFE (settings under which ids may repeat) or STORE_UNAVAILABLE. A store that went back opens, and
 * refuses to grant.
 */
export async function openStore(config: StoreConfig): Promise<Store & AcceptStore> {
  checkConfig(config);
  if (config.backend === "sqlite") return (await sqlite()).open(config);
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
  return (await postgres()).migrate(config, options);
}

/** An accept writes every tag, so it may take longer than what a server waits for. */
const ACCEPT_TIMEOUT_MS = 60_000;

/** Accepts a store as it is, with every floor raised by `gap` ids (0 … 2^63 − 1, at most to the tag's ceiling). */
export async function acceptStore(config: StoreConfig, gap: bigint): Promise<{ tags: number }> {
  assertGap(gap);
  const store = await openStore({ ...config, timeoutMs: ACCEPT_TIMEOUT_MS });
  try {
    return await store.accept(gap);
  } finally {
    await store.close();
  }
}

/** Looks at a store without changing it, also at one that a server refuses. */
export async function storeStatus(config: StoreConfig): Promise<StoreStatus> {
  checkConfig(config);
  if (config.backend === "sqlite") return (await sqlite()).status(config);
  return (await postgres()).status(config);
}
