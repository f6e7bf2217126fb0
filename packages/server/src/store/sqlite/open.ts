import path from "node:path";
import { DEFAULT_TIMEOUT_MS, refuseUnsafe, type SqliteConfig } from "../shared/config.ts";
import { workableVersion } from "../shared/migration.ts";
import { monotonicMs } from "./file/connection.ts";
import { Database, type DatabaseOptions } from "./file/database.ts";
import { networkFileSystem } from "./file/files.ts";
import { migrations } from "./migrations/index.ts";
import { appliedMigrations } from "./schema.ts";

/** Opens a file of the expected store, if one is expected, that was located and has a schema this release can work with; never makes one. */
export function openDatabase(
  config: SqliteConfig,
  options: DatabaseOptions = {},
): { database: Database; schemaVersion: number; storeId: string } {
  refuseNetworkFileSystem(config);
  const database = new Database(config.path, options);
  try {
    const deadlineMs = monotonicMs() + deadlineOf(config);
    const found = database.raw(deadlineMs, (transaction) => ({
      schemaVersion: workableVersion(migrations, appliedMigrations(transaction)),
      storeId: database.belong(transaction),
    }));
    return { database, ...found };
  } catch (error) {
    database.close();
    throw error;
  }
}

export function deadlineOf(config: SqliteConfig): number {
  return config.timeoutMs ?? DEFAULT_TIMEOUT_MS;
}

/** On a network file system locks may not be seen by others, or be lost: two processes would grant the same ids. */
export function refuseNetworkFileSystem(config: SqliteConfig): void {
  const name = networkFileSystem(path.dirname(config.path));
  if (name === undefined) return;
  const text = `the store's file lies on ${name}, whose locks cannot be relied on`;
  refuseUnsafe(new Map([["network_filesystem", text]]), config.allowUnsafe);
}
