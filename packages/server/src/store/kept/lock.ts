import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

/** A lock that the kernel holds for this process, and lets go of when the process ends, whatever ends it. */
export interface Lock {
  /** Names the locked file itself: a copy of it has another one. */
  readonly identity: string;
  /** Once. */
  close(): void;
}

/**
 * Takes the lock; undefined when another process (or another part of this one) has it. Throws when the file cannot be
 * made.
 *
 * Node knows no locks. SQLite takes them of the kernel, also where several threads of a process want the same one, so the
 * file is an empty database with a transaction that never ends.
 */
export function takeLock(path: string): Lock | undefined {
  const database = new DatabaseSync(path);
  try {
    database.exec("PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE");
    const { dev, ino, birthtimeNs } = statSync(path, { bigint: true });
    return { identity: `${dev}/${ino}/${birthtimeNs}`, close: () => database.close() };
  } catch (error) {
    database.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
}

const SQLITE_BUSY = 5;

function isBusy(error: unknown): boolean {
  const code = error instanceof Error && "errcode" in error ? error.errcode : undefined;
  return typeof code === "number" && (code & 0xff) === SQLITE_BUSY;
}
