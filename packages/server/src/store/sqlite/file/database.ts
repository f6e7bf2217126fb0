import { DatabaseSync, type StatementSync } from "node:sqlite";
import { IdmintError } from "@idmint/core";
import { storeUnavailable, storeWentBack } from "@idmint/core/server";
import {
  codeOf,
  cutBackWal,
  isBusy,
  prepareConnection,
  SQLITE_NOTADB,
  type Transaction,
  untilNotBusy,
} from "./connection.ts";
import { emptyDeletedWal, type Files, lookAtFiles } from "./files.ts";
import { Fence, readStoreRow, type StoreRow } from "./identity.ts";
import { assertOneName, missingStore, notADatabase } from "./location.ts";
import { type Mark, type Sight, Witness } from "./witness.ts";
import { WitnessKeeper } from "./witness-keeper.ts";
import type { Bond } from "./witness-state.ts";

/** A -wal larger than this is cut back as soon as no reader needs it; ordinary checkpoints begin at 4 MiB. */
const WAL_LIMIT_BYTES = 32n * 1024n * 1024n;

/** Most snapshots that one reading takes, each beside another witness than the one looked at before it. */
const MAX_SNAPSHOTS = 5;

interface Handle {
  readonly sqlite: DatabaseSync;
  readonly files: Files;
  readonly statements: Map<string, StatementSync>;
}

/**
 * One connection to the store's file, for one thread. It is closed or open; it opens at the next use after anything went
 * wrong with it, and when it finds that its files were replaced.
 */
export class Database {
  readonly path: string;
  readonly fence: Fence;
  /** The wall clock of the host, milliseconds since 1970. */
  readonly now: () => number;
  readonly #witness: Witness;
  readonly #keeper: WitnessKeeper;
  #handle: Handle | undefined;

  /** `path` is the real one; see `locate`. */
  constructor(path: string, now: () => number = Date.now) {
    this.path = path;
    this.now = now;
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
      const row = readStoreRow(transaction);
      const reason = this.fence.check(transaction, row, files, witness);
      if (options.fenced === "refuse") {
        if (reason !== "") throw storeWentBack(reason);
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
      handle.sqlite.exec("COMMIT");
    } catch (error) {
      this.#abandon();
      throw storeUnavailable("the outcome of a commit is not known", error);
    }
    // How far a store has come that is refused is no measure for later ones, nor for the witness.
    if (after !== undefined && isSound) {
      this.fence.committed(after);
      this.#witness.record(after, after.bond.present);
    }
    if (files.walSize > WAL_LIMIT_BYTES) cutBackWal(handle.sqlite);
    return result;
  }

  /** Runs `work` on one snapshot; `fenced` says why nothing may be granted, or is empty. */
  read<T>(deadlineMs: number, work: (transaction: Transaction, fenced: string) => T): T {
    for (let left = MAX_SNAPSHOTS; left > 0; left--) {
      const witness = this.#sight();
      const handle = this.#begin("BEGIN", deadlineMs);
      try {
        const transaction = this.#transaction(handle);
        const files = this.#sameFiles(handle);
        const row = readStoreRow(transaction);
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

  #sight(): Sight | undefined {
    try {
      return this.#witness.look();
    } catch (error) {
      throw storeUnavailable(`cannot read ${this.#witness.path}`, error);
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
    const { files } = handle;
    if (
      now !== undefined &&
      now.identity === files.identity &&
      now.wal === files.wal &&
      now.shm === files.shm
    ) {
      if (now.links > 1n) this.fence.distrustContents();
      assertOneName(now.links);
      return now;
    }
    this.fence.filesReplaced();
    this.#rollBack(handle);
    this.#abandon();
    throw storeWentBack("the files of the store were replaced under the running server");
  }

  #opened(deadlineMs: number): Handle {
    if (this.#handle !== undefined) return this.#handle;
    const there = lookAtFiles(this.path);
    if (there === undefined) {
      if (this.fence.hasSeenStore) throw storeWentBack("the file of the store is gone");
      throw missingStore(this.path);
    }
    this.fence.distrustContents();
    assertOneName(there.links);
    let sqlite: DatabaseSync | undefined;
    try {
      sqlite = new DatabaseSync(this.path);
      const files = prepareConnection(sqlite, this.path, deadlineMs);
      this.#handle = { sqlite, files, statements: new Map() };
      return this.#handle;
    } catch (error) {
      if (sqlite?.isOpen === true) sqlite.close();
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
    if (codeOf(error) === SQLITE_NOTADB && !this.fence.hasSeenStore) return notADatabase(this.path);
    const said = codeOf(error) === undefined ? "" : ` (${(error as Error).message})`;
    return storeUnavailable(`the store failed${said}`, error);
  }
}
