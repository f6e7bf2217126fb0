import path from "node:path";
import { DEFAULT_TIMEOUT_MS, refuseUnsafe, type SqliteConfig } from "../shared/config.ts";
import { folderFault } from "./file/folders.ts";
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
  refuseUnsafePlace(config);
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

/**
 * What is wrong with the place of a file, by the name under which it may be allowed. On a network file system locks may not
 * be seen by others, or be lost: two processes would grant the same ids. In a folder where others may write they can put
 * another store, and a witness that suits it, in the place of this one.
 */
export function unsafePlace(file: string): ReadonlyMap<string, string> {
  const folder = path.dirname(file);
  const found = new Map<string, string>();
  const remote = networkFileSystem(folder);
  if (remote !== undefined) {
    const text = `the store's file lies on ${remote}, whose locks cannot be relied on`;
    found.set("network_filesystem", text);
  }
  const fault = folderFault(folder);
  if (fault !== undefined) found.set("shared_folder", fault);
  return found;
}

export function refuseUnsafePlace(config: SqliteConfig): void {
  refuseUnsafe(unsafePlace(config.path), config.allowUnsafe);
}
