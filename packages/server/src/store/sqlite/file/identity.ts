import type { Issuing } from "@idmint/core/server";
import { MARKED, WENT_BACK } from "../../pins/own-row-state.ts";
import { issuingFromRow, type IssuingRow } from "../../shared/issuing.ts";
import type { Transaction } from "./connection.ts";
import type { Files } from "./files.ts";
import { isBehind, type Mark, type Sight } from "./witness.ts";
import { type Bond, standingOf } from "./witness-state.ts";

export interface StoreRow {
  readonly storeId: string;
  readonly incarnation: string;
  /** Identity of the file that was accepted. */
  readonly identity: string;
  readonly bond: Bond;
  readonly revision: bigint;
  readonly generation: bigint;
  readonly progress: bigint;
  /** See `sumOfRows`. */
  readonly floors: bigint;
  readonly issuing: Issuing;
}

/** Reads the row `store`, or undefined in a file without it. */
export function readStoreRow(transaction: Transaction): StoreRow | undefined {
  const row = transaction.get(
    "SELECT store_id, incarnation, identity, witness, next_witness, revision, generation, progress, floors, issuing_revision, stopped_at_ms FROM store",
  );
  if (row === undefined) return undefined;
  return {
    storeId: String(row["store_id"]),
    incarnation: String(row["incarnation"]),
    identity: String(row["identity"]),
    bond: { present: String(row["witness"]), next: String(row["next_witness"]) },
    revision: row["revision"] as bigint,
    generation: row["generation"] as bigint,
    progress: row["progress"] as bigint,
    floors: row["floors"] as bigint,
    issuing: issuingFromRow(row as unknown as IssuingRow),
  };
}

const LATER = "the store is an older copy: this server has seen later changes";
const PIECED = "the store is put together from several copies";

/** What not every process finds: it is marked in the file that was accepted, so that all refuse. */
export const FOUND_BY_ONE: ReadonlySet<string> = new Set([LATER, PIECED]);

/** Every process refuses from now on, until an accept writes the identity of the file again. */
export function markWentBack(transaction: Transaction, why: string): void {
  transaction.run("UPDATE store SET identity = ?", WENT_BACK + why);
}

/**
 * Tells whether the store is what was accepted, or went back. Six things are compared, before every grant:
 *
 * 1. The database file's identity with the one recorded when it was made or accepted: a copy, a renamed copy.
 * 2. The file that is its witness with those its row knows: an older copy of both, written into the same files. Without
 *    any witness only a process goes on that has seen the right one; a file that was moved alone has left its -wal behind
 *    too, and the last grants in it.
 * 3. Its progress with the highest this process saw: an older copy written into the same file.
 * 4. Its progress with the witness: the same, for a process that never saw the store before.
 * 5. Its progress with the sum of its rows: an older file under a newer -wal, where only some rows went back. Costs a
 *    read of all tags, so it is done only when the database file was written to: by a checkpoint, every few hundred
 *    commits, or by somebody else.
 * 6. Whether files were replaced under this process's connection. That stays until an operator accepts.
 */
export class Fence {
  #highest: Mark | undefined;
  #incarnation: string | undefined;
  #replacedIn: string | undefined;
  #trustedContents: string | undefined;
  #hasSeenWitness = false;

  /** Whether this process has ever read the store's row. */
  get hasSeenStore(): boolean {
    return this.#incarnation !== undefined;
  }

  /** The files of an open connection turned out not to be the ones under their names. */
  filesReplaced(): void {
    this.#replacedIn = this.#incarnation;
  }

  /** The contents are read anew before the next grant. */
  distrustContents(): void {
    this.#trustedContents = undefined;
  }

  /** A transaction that ended with this mark is committed. */
  committed(mark: Mark): void {
    this.#highest = mark;
  }

  /** How far the store is within this transaction, or undefined when it has no row yet. */
  mark(transaction: Transaction): StoreRow | undefined {
    const row = readStoreRow(transaction);
    if (row === undefined) return undefined;
    this.#incarnation = row.incarnation;
    return row;
  }

  /**
   * Why nothing may be granted, in words, or an empty text.
   *
   * `witness` must have been looked at under the write lock, or before the transaction saw its snapshot: the witness is
   * never ahead of a database that is whole, but another process may commit and write it at any time.
   */
  check(
    transaction: Transaction,
    row: StoreRow | undefined,
    files: Files,
    witness: Sight | undefined,
  ): string {
    if (row === undefined) return "the store has lost its identity";
    this.#incarnation = row.incarnation;
    if (this.#replacedIn !== undefined) {
      if (this.#replacedIn === row.incarnation) {
        return "the files of the store were replaced under the running server";
      }
      this.#replacedIn = undefined;
    }
    if (row.identity.startsWith(WENT_BACK)) {
      return MARKED + row.identity.slice(WENT_BACK.length);
    }
    if (row.identity !== files.identity) {
      return "the file of the store is a copy, not the file that was accepted";
    }
    const standing = standingOf(row.bond, witness);
    if (standing === "missing" && !this.#hasSeenWitness) {
      return "the file of the store lies here without its witness, and may lack its last changes";
    }
    const witnessed = witness?.mark;
    if (witnessed !== undefined && isBehind(row, witnessed)) {
      return witnessed.storeId === row.storeId
        ? "the store is an older copy: its witness has seen later changes"
        : "the store is another one than its witness has seen";
    }
    if (standing === "foreign") {
      return "the store and its witness do not belong together: at least one of them is an older copy";
    }
    if (this.#highest !== undefined && isBehind(row, this.#highest)) {
      return LATER;
    }
    if (this.#trustedContents !== files.contents) {
      if (!hasAllRows(transaction, row)) return PIECED;
      this.#trustedContents = files.contents;
    }
    this.#highest = row;
    if (standing !== "missing") this.#hasSeenWitness = true;
    return "";
  }
}

/** Floors are summed up within this many bits: the sum of two such numbers fits into one of SQLite's. */
const SUM_BITS = 62;

const SUM_OF_ROWS = `SELECT t.progress + (SELECT coalesce(sum(version), 0) FROM worker)
    + (SELECT issuing_revision FROM store) AS progress, t.high, t.low
  FROM (SELECT coalesce(sum(version + revision), 0) AS progress, coalesce(sum(floor >> 32), 0) AS high,
    coalesce(sum(floor & 4294967295), 0) AS low FROM tag) AS t`;
const COUNT = `UPDATE store SET progress = progress + ?1, floors = (floors + ?2) & ${2n ** BigInt(SUM_BITS) - 1n}`;

export type SumOfRows = Pick<StoreRow, "floors" | "progress">;

/** What rows add up to: every change of one raises `progress`, and one that did not come from here shows in `floors`. */
export function sumOfRows(transaction: Transaction): SumOfRows {
  const { progress, high, low } = transaction.get(SUM_OF_ROWS) as Record<string, bigint>;
  const floors = ((high as bigint) << 32n) + (low as bigint);
  return { progress: progress as bigint, floors: BigInt.asUintN(SUM_BITS, floors) };
}

/** Counts changes of rows, and by how much they moved floors in all, in the transaction that makes them. */
export function countChanges(
  transaction: Transaction,
  changes: number | bigint,
  floors: bigint,
): void {
  transaction.run(COUNT, changes, BigInt.asUintN(SUM_BITS, floors));
}

function hasAllRows(transaction: Transaction, row: StoreRow): boolean {
  // Pages that SQLite holds in memory would hide what somebody wrote into the file.
  transaction.all("PRAGMA shrink_memory");
  const { progress, floors } = sumOfRows(transaction);
  return progress === row.progress && floors === row.floors;
}
