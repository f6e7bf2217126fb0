import path from "node:path";
import { DEFAULT_TIMEOUT_MS, refuseUnsafe, type SqliteConfig } from "../shared/config.ts";
import { workableVersion } from "../shared/migration.ts";
import { monotonicMs } from "./file/connection.ts";
import { Database } from "./file/database.ts";
import { networkFileSystem } from "./file/files.ts";
import { migrations } from "./migrations/index.ts";
import { appliedMigrations } from "./schema.ts";

/** Opens a file that was located and has a schema this release can work with; never makes one. */
export function openDatabase(
  config: SqliteConfig,
  now?: () => number,
): { database: Database; schemaVersion: number } {
  refuseNetworkFileSystem(config);
  const database = new Database(config.path, now);
  try {
    const deadlineMs = monotonicMs() + deadlineOf(config);
    const schemaVersion = database.raw(deadlineMs, (transaction) =>
      workableVersion(migrations, appliedMigrations(transaction)),
    );
    return { database, schemaVersion };
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
