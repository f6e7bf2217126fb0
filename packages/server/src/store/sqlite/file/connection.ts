// One connection to a SQLite file: how it is set up, and how it waits for another process.
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { storeUnavailable } from "@idmint/core/server";
import { type Files, holdsOpen, lookAtFiles } from "./files.ts";

/** Statements of one transaction. 64-bit integers come as bigint. */
export interface Transaction {
  all(sql: string, ...values: SQLInputValue[]): Record<string, unknown>[];
  get(sql: string, ...values: SQLInputValue[]): Record<string, unknown> | undefined;
  /** Answers how many rows were changed. */
  run(sql: string, ...values: SQLInputValue[]): number;
}

/** Monotonic milliseconds that every thread of the process counts from the same origin. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

/** Longest wait for the lock of another process, in milliseconds. */
const LOCK_WAIT_MS = 2_000;

export function cutBackWal(sqlite: DatabaseSync): void {
  try {
    sqlite.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch {
    // Somebody still reads; a later commit tries again.
  }
}

/**
 * Writes the -wal into the database file, so that the next commit begins it anew and needs no room. SQLite does so after
 * commits, of which there are none on a full disk; while other processes have the -wal open, it stays as it is.
 */
export function reuseWal(sqlite: DatabaseSync): void {
  try {
    sqlite.exec("PRAGMA wal_checkpoint(RESTART)");
  } catch {
    // Somebody still reads, or the database file would have to grow; the next refused commit tries again.
  }
}

/**
 * Opens a file that is there; never makes one.
 *
 * INVARIANT: a connection is used only when SQLite holds the database file, the -wal and the -shm that lie under their
 * names. Its opens come one after the other, and a folder may be moved in between: one store's file over another's -wal.
 */
export function connect(path: string, deadlineMs: number): { sqlite: DatabaseSync; files: Files } {
  const sqlite = new DatabaseSync(urlOf(path, "mode", "rw"));
  try {
    prepare(sqlite, deadlineMs);
    const files = lookAtFiles(path);
    if (files === undefined || !holdsOpen(files)) {
      throw storeUnavailable("the files of the store were moved while they were opened");
    }
    return { sqlite, files };
  } catch (error) {
    if (sqlite.isOpen) sqlite.close();
    throw error;
  }
}

/**
 * The id in a database file, without what lies beside it, locks, or anything that is written; undefined for a file that
 * cannot be read like that. A store has its id from its first commit on, which is in the file itself.
 */
export function peekStoreId(path: string): string | undefined {
  let sqlite: DatabaseSync | undefined;
  try {
    sqlite = new DatabaseSync(urlOf(path, "immutable", "1"), { readOnly: true });
    const id = sqlite.prepare("SELECT store_id FROM store").get()?.["store_id"];
    return typeof id === "string" ? id : undefined;
  } catch {
    return undefined;
  } finally {
    if (sqlite?.isOpen === true) sqlite.close();
  }
}

function urlOf(path: string, name: string, value: string): URL {
  const url = pathToFileURL(path);
  url.searchParams.set(name, value);
  return url;
}

function prepare(sqlite: DatabaseSync, deadlineMs: number): void {
  sqlite.exec("PRAGMA busy_timeout = 0");
  untilNotBusy(deadlineMs, () => {
    const mode = sqlite.prepare("PRAGMA journal_mode = WAL").get()?.["journal_mode"];
    if (mode !== "wal")
      throw new Error(`the file system allows no WAL: journal_mode is ${String(mode)}`);
  });
  // FULL: a commit is on disk before it is answered. fullfsync: on macOS only then it really is.
  sqlite.exec("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON");
  sqlite.exec("PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 4194304");
  sqlite.exec("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY");
  // The -wal and -shm exist from the first read on, and as long as any connection is open.
  untilNotBusy(deadlineMs, () => sqlite.exec("SELECT 1 FROM sqlite_schema"));
}

/** Repeats what fails for another process's lock, with growing and jittered pauses, until the deadline. */
export function untilNotBusy(deadlineMs: number, attempt: () => void): void {
  const end = Math.min(deadlineMs, monotonicMs() + LOCK_WAIT_MS);
  for (let pauseMs = 0.2; ; pauseMs = Math.min(pauseMs * 1.5, 10)) {
    try {
      attempt();
      return;
    } catch (error) {
      if (!isBusy(error) || monotonicMs() + pauseMs >= end) throw error;
    }
    sleep(pauseMs * (0.5 + Math.random()));
  }
}

const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
export const SQLITE_FULL = 13;
export const SQLITE_NOTADB = 26;

/** SQLite's primary code; undefined for what SQLite did not throw. */
export function codeOf(error: unknown): number | undefined {
  const { errcode } = error as { errcode?: unknown };
  // The low byte is the primary code; the rest says which kind of it.
  return typeof errcode === "number" ? errcode & 0xff : undefined;
}

export function isBusy(error: unknown): boolean {
  const code = codeOf(error);
  return code === SQLITE_BUSY || code === SQLITE_LOCKED;
}

const never = new Int32Array(new SharedArrayBuffer(4));

/** Blocks this thread, which has nothing else to do: every request behind this one needs the same lock. */
function sleep(ms: number): void {
  Atomics.wait(never, 0, 0, ms);
}
