import type { DatabaseSync, StatementSync } from "node:sqlite";
import { IdmintError } from "@idmint/core";
import {
  storeIsForeign,
  storeRefusesNow,
  storeUnavailable,
  storeWentBack,
} from "@idmint/core/server";
import {
  codeOf,
  connect,
  cutBackWal,
  isBusy,
  peekStoreId,
  reuseWal,
  SQLITE_FULL,
  SQLITE_NOTADB,
  type Transaction,
  untilNotBusy,
} from "./connection.ts";
import { areSame, emptyDeletedWal, type Files, lookAtFiles } from "./files.ts";
import { Fence, FOUND_BY_ONE, markWentBack, readStoreRow, type StoreRow } from "./identity.ts";
import { assertOneName, missingStore, notADatabase } from "./location.ts";
import { OwnRow } from "./own-row.ts";
import { type Mark, type Sight, Witness } from "./witness.ts";
import { WitnessKeeper } from "./witness-keeper.ts";
import type { Bond } from "./witness-state.ts";

/** A -wal larger than this is cut back as soon as no reader needs it; ordinary checkpoints begin at 4 MiB. */
const WAL_LIMIT_BYTES = 32n * 1024n * 1024n;

/** Most snapshots that one reading takes, each beside another witness than the one looked at before it. */
const MAX_SNAPSHOTS = 5;

const GONE = "the file of the store is gone";
const DISK_FULL = "the disk that the store lies on is full; make room on it";
const MOVED = "the files of the store were moved a moment ago";

interface Handle {
  readonly sqlite: DatabaseSync;
  readonly files: Files;
  readonly statements: Map<string, StatementSync>;
}

export interface DatabaseOptions {
  /** The wall clock of the host, milliseconds since 1970. */
  readonly now?: (() => number) | undefined;
  /** The store that it belongs to; undefined: whatever lies there, as operators want it. */
  readonly storeId?: string | undefined;
}

/**
 * One connection to the store's file, for one thread. It is closed or open; it opens at the next use after anything went
 * wrong with it, and when it finds that its files were replaced.
 *
 * Under the name, while it is open | what is done
 * its own files                    | used
 * nothing                          | away: kept open, used again when they are back
 * the file of another store        | away, likewise
 * another file of the same store,  | refused until an operator accepts: who else uses the files of before is not known
 * or another -wal or -shm          |
 */
export class Database {
  readonly path: string;
  readonly fence: Fence;
  readonly ownRow: OwnRow = new OwnRow();
  /** The wall clock of the host, milliseconds since 1970. */
  readonly now: () => number;
  readonly #witness: Witness;
  readonly #keeper: WitnessKeeper;
  #handle: Handle | undefined;

  #storeId: string | undefined;
  /** Another file that lies under the name, and the id in it. */
  #peeked: { readonly file: string; readonly storeId: string } | undefined;

  /** `path` is the real one; see `locate`. */
  constructor(path: string, { now = Date.now, storeId }: DatabaseOptions = {}) {
    this.path = path;
    this.now = now;
    this.#storeId = storeId;
    this.#witness = new Witness(path);
    this.#keeper = new WitnessKeeper(this.#witness);
    this.fence = new Fence();
  }

  /**
   * Runs `work` in a transaction that holds the write lock. Rejects with STORE_EPOCH_CHANGED when the store is fenced
   * (unless `fenced` is allowed), and with STORE_UNAVAILABLE when nothing happened or the outcome is not known.
   *
   * INVARIANT: what `work` answers is passed on only after COMMIT succeeded. A row that UPDATE … RETURNING answers
   * outside of BEGIN … COMMIT may not be stored at all: the error of the commit behind it is swallowed.
   */
  write<T>(
    deadlineMs: number,
    work: (transaction: Transaction) => T,
    options: { fenced: "refuse" | "allow" } = { fenced: "refuse" },
  ): T {
    const handle = this.#begin("BEGIN IMMEDIATE", deadlineMs);
    let result: T;
    let after: StoreRow | undefined;
    let isSound: boolean;
    let files: Files;
    try {
      const transaction = this.#transaction(handle);
      // Under the lock nobody commits, and nobody else puts another witness in place.
      const witness = this.#sight();
      files = this.#sameFiles(handle);
      const row = this.#row(transaction);
      const reason = this.fence.check(transaction, row, files, witness);
      if (options.fenced === "refuse") {
        this.#assertOursIn(witness);
        if (reason !== "") throw this.#refusal(handle, reason, witness);
        if (row !== undefined) this.#keeper.keep(transaction, row, witness);
      }
      result = work(transaction);
      after = this.fence.mark(transaction);
      isSound = reason === "" || after?.incarnation !== row?.incarnation;
    } catch (error) {
      this.#rollBack(handle);
      throw this.#failure(error);
    }
    try {
      // failpoint: sqlite-committing
      handle.sqlite.exec("COMMIT");
    } catch (error) {
      throw this.#notCommitted(handle, error);
    }
    // How far a store has come that is refused is no measure for later ones, nor for the witness.
    if (after !== undefined && isSound) {
      this.fence.committed(after);
      this.#witness.record(after, after.bond.present);
    }
    if (files.walSize > WAL_LIMIT_BYTES) cutBackWal(handle.sqlite);
    return result;
  }

  /** A -wal that did not take the last frame of a commit has no commit. Any other error may have come behind that frame. */
  #notCommitted(handle: Handle, error: unknown): IdmintError {
    if (codeOf(error) === SQLITE_FULL) {
      this.#rollBack(handle);
      reuseWal(handle.sqlite);
      return this.#failure(error);
    }
    this.#abandon();
    return storeUnavailable("the outcome of a commit is not known", error);
  }

  /** Runs `work` on one snapshot; `fenced` says why nothing may be granted, or is empty. */
  read<T>(deadlineMs: number, work: (transaction: Transaction, fenced: string) => T): T {
    for (let left = MAX_SNAPSHOTS; left > 0; left--) {
      const witness = this.#sight();
      const handle = this.#begin("BEGIN", deadlineMs);
      try {
        const transaction = this.#transaction(handle);
        const files = this.#sameFiles(handle);
        const row = this.#row(transaction);
        this.#assertOursIn(witness);
        const fenced = this.fence.check(transaction, row, files, witness);
        if (fenced !== "" && this.#hasTurnedSince(witness)) {
          this.#rollBack(handle);
          continue;
        }
        const result = work(transaction, fenced);
        handle.sqlite.exec("COMMIT");
        // The lock that a connection holds while it rests would keep others from opening a restored file that is not in
        // WAL mode (what VACUUM INTO makes): a fresh server, and `idmint store accept`.
        if (fenced !== "") this.#abandon();
        return result;
      } catch (error) {
        this.#rollBack(handle);
        throw this.#failure(error);
      }
    }
    throw storeUnavailable("the witness of the store changes all the time");
  }

  /** Runs statements that cannot be in a transaction of ours, or know of no store yet. */
  raw<T>(
    deadlineMs: number,
    work: (transaction: Transaction, exec: (sql: string) => void) => T,
  ): T {
    const handle = this.#opened(deadlineMs);
    try {
      return work(this.#transaction(handle), (sql) => {
        untilNotBusy(deadlineMs, () => handle.sqlite.exec(sql));
      });
    } catch (error) {
      this.#rollBack(handle);
      throw this.#failure(error);
    }
  }

  /** From now on it belongs to the store that lies there. Answers its id; empty where a file has lost it. */
  belong(transaction: Transaction): string {
    this.#storeId ??= readStoreRow(transaction)?.storeId ?? "";
    this.#row(transaction);
    return this.#storeId;
  }

  /** Opens the files by their names at the next use. */
  reopen(): void {
    this.#abandon();
  }

  /** Makes the witness of a store that begins at `mark`. */
  makeWitness(mark: Mark): Bond {
    this.#witness.remove();
    return this.adoptWitness(mark);
  }

  /** The witness that lies there now as that of a history that begins at `mark`. */
  adoptWitness(mark: Mark): Bond {
    return { present: this.#witness.adopt(mark), next: this.#witness.makeAhead(mark) };
  }

  close(): void {
    this.#abandon();
    this.#witness.close();
  }

  /** INVARIANT: of another store nothing is believed, and nothing is written to it. */
  #row(transaction: Transaction): StoreRow | undefined {
    const row = readStoreRow(transaction);
    try {
      if (row !== undefined) this.#assertOurs(row.storeId);
    } catch (error) {
      // Kept, it would make our own files look like ones that took its place.
      this.#abandon();
      throw error;
    }
    return row;
  }

  #assertOurs(storeId: string): void {
    const ours = this.#storeId;
    if (ours !== undefined && storeId !== ours) throw storeIsForeign(storeId, ours);
  }

  /** The id in the file that was seen, without opening it as a store; undefined where it cannot be read like that. */
  #peek(seen: Files): string | undefined {
    const file = `${seen.identity} ${seen.contents}`;
    if (this.#peeked?.file === file) return this.#peeked.storeId;
    const storeId = peekStoreId(this.path);
    this.#assertStill(seen);
    if (storeId !== undefined) this.#peeked = { file, storeId };
    return storeId;
  }

  #sight(): Sight | undefined {
    try {
      return this.#witness.look();
    } catch (error) {
      throw storeUnavailable(`cannot read ${this.#witness.path}`, error);
    }
  }

  /** A witness of another store says nothing of ours: its folder lies here, or did a moment ago. */
  #assertOursIn(witness: Sight | undefined): void {
    if (witness?.mark !== undefined) this.#assertOurs(witness.mark.storeId);
  }

  /** Under the lock no witness takes its turn: another one than before was in a folder that lay here for a moment. */
  #refusal(handle: Handle, reason: string, witness: Sight | undefined): IdmintError {
    if (this.#hasTurnedSince(witness)) return storeUnavailable(MOVED);
    if (FOUND_BY_ONE.has(reason)) this.#mark(handle, reason);
    return storeWentBack(reason);
  }

  /** The only thing that is written to a store that is refused. Where it fails the next write tries again. */
  #mark(handle: Handle, reason: string): void {
    try {
      markWentBack(this.#transaction(handle), reason);
      handle.sqlite.exec("COMMIT");
    } catch {
      this.#abandon();
    }
  }

  /** Whether a snapshot may be of before or after the sight: then they need not fit together. */
  #hasTurnedSince(sight: Sight | undefined): boolean {
    const now = this.#sight();
    return now?.file !== sight?.file || now?.nonce !== sight?.nonce;
  }

  #begin(sql: string, deadlineMs: number): Handle {
    const handle = this.#opened(deadlineMs);
    try {
      untilNotBusy(deadlineMs, () => handle.sqlite.exec(sql));
    } catch (error) {
      throw this.#failure(error);
    }
    return handle;
  }

  /**
   * INVARIANT: nothing is read or written through a connection whose files are not the ones that lie under their names
   * now. Another -shm means other locks, another -wal or database file other contents: what this connection sees is then
   * nobody else's truth.
   */
  #sameFiles(handle: Handle): Files {
    const now = lookAtFiles(this.path);
    if (now !== undefined && areSame(now, handle.files)) {
      if (now.links > 1n) this.fence.distrustContents();
      assertOneName(now.links);
      return now;
    }
    this.#rollBack(handle);
    this.#assertReplaced(now, handle);
    this.fence.filesReplaced();
    this.#abandon();
    throw storeWentBack("the files of the store were replaced under the running server");
  }

  /** Throws when they are only away: gone, moved just now, or another store's. */
  #assertReplaced(now: Files | undefined, { files }: Handle): void {
    if (now === undefined) throw storeUnavailable(GONE);
    this.#assertStill(now);
    if (now.identity === files.identity || this.#storeId === undefined) return;
    const storeId = this.#peek(now);
    if (storeId === undefined) throw storeUnavailable("another file lies where the store's was");
    this.#assertOurs(storeId);
  }

  /** A look goes from file to file, and what is read by name comes after it: a folder may be moved in between. */
  #assertStill(seen: Files): void {
    const now = lookAtFiles(this.path);
    if (now === undefined || !areSame(now, seen)) throw storeUnavailable(MOVED);
  }

  #opened(deadlineMs: number): Handle {
    if (this.#handle !== undefined) return this.#handle;
    const there = lookAtFiles(this.path);
    if (there === undefined) {
      const isKnown = this.fence.hasSeenStore || this.#storeId !== undefined;
      throw isKnown ? storeUnavailable(GONE) : missingStore(this.path);
    }
    this.fence.distrustContents();
    assertOneName(there.links);
    const peeked = this.#storeId === undefined ? undefined : this.#peek(there);
    // What cannot be read like that is looked at when it is open.
    if (peeked !== undefined) this.#assertOurs(peeked);
    try {
      this.#handle = { ...connect(this.path, deadlineMs), statements: new Map() };
      return this.#handle;
    } catch (error) {
      throw this.#failure(error);
    }
  }

  #transaction(handle: Handle): Transaction {
    const prepared = (sql: string): StatementSync => {
      const known = handle.statements.get(sql);
      if (known !== undefined) return known;
      const statement = handle.sqlite.prepare(sql);
      statement.setReadBigInts(true);
      // SQLite carries some pragmas out while it prepares them, so they are prepared each time.
      if (!sql.startsWith("PRAGMA")) handle.statements.set(sql, statement);
      return statement;
    };
    return {
      all: (sql, ...values) => prepared(sql).all(...values),
      get: (sql, ...values) => prepared(sql).all(...values)[0],
      run: (sql, ...values) => Number(prepared(sql).run(...values).changes),
    };
  }

  #rollBack(handle: Handle): void {
    try {
      if (handle.sqlite.isOpen) handle.sqlite.exec("ROLLBACK");
    } catch {
      // SQLite has rolled back by itself already, or the connection is beyond use; either way nothing was committed.
    }
  }

  /** Drops the connection; the next use opens another. */
  #abandon(): void {
    const handle = this.#handle;
    this.#handle = undefined;
    try {
      if (handle !== undefined && lookAtFiles(this.path)?.wal !== handle.files.wal) {
        emptyDeletedWal(handle.files.wal);
      }
      if (handle?.sqlite.isOpen === true) handle.sqlite.close();
    } catch {
      // Closing reports what went wrong before; the connection is gone all the same.
    }
  }

  /** Any error as an IdmintError. Whatever is not ours leaves the connection in doubt, so it is dropped. */
  #failure(error: unknown): IdmintError {
    if (error instanceof IdmintError) return error;
    if (isBusy(error)) return storeUnavailable("another process keeps the store locked", error);
    this.#abandon();
    if (codeOf(error) === SQLITE_FULL) return storeRefusesNow(DISK_FULL, error);
    if (codeOf(error) === SQLITE_NOTADB && !this.fence.hasSeenStore) return notADatabase(this.path);
    const said = codeOf(error) === undefined ? "" : ` (${(error as Error).message})`;
    return storeUnavailable(`the store failed${said}`, error);
  }
}
