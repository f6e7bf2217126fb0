// Whether the ledger of a tag says that an id had two holders at once.
import type { LedgerPlace, LedgerRow, Store } from "@idmint/core/server";
import { IdmintError } from "@idmint/core";

interface LedgerFault {
  readonly kind: "granted twice" | "allocated twice";
  readonly first: bigint;
  readonly last: bigint;
  /** The older row, and the newer one. */
  readonly rows: readonly [LedgerRow, LedgerRow];
}

export interface LedgerVerdict {
  readonly tag: string;
  readonly rows: number;
  /** The first few. */
  readonly faults: readonly LedgerFault[];
  readonly faultCount: number;
}

const MAX_FAULTS = 20;
const PAGE = 1_000;
/** Of one tag. A row takes about 500 bytes here. */
const MAX_ROWS = 2_000_000;

/**
 * Reads and judges the ledger of a tag. What looks like a fault is read once more: a row of a change under way may be stored
 * before an older one that it rests on, so one reading can pass over the older one.
 */
export async function verifyLedger(
  store: Pick<Store, "findInLedger" | "listLedger">,
  tag: string,
  signal: Pick<AbortSignal, "throwIfAborted">,
): Promise<LedgerVerdict> {
  const first = await readAndJudge(store, tag, signal);
  return first.faultCount === 0 ? first : readAndJudge(store, tag, signal);
}

async function readAndJudge(
  store: Pick<Store, "findInLedger" | "listLedger">,
  tag: string,
  signal: Pick<AbortSignal, "throwIfAborted">,
): Promise<LedgerVerdict> {
  const rows: LedgerRow[] = [];
  let after: LedgerPlace | undefined;
  do {
    const page = await store.listLedger({ tag, after, limit: PAGE });
    rows.push(...page.rows);
    after = page.next;
    signal.throwIfAborted();
    if (rows.length > MAX_ROWS) {
      const text = `tag "${tag}" has more than ${MAX_ROWS} rows in its ledger, which is too many to judge at once`;
      throw new IdmintError("INVALID_ARGUMENT", text);
    }
  } while (after !== undefined);
  // Asked for last: rows that went meanwhile must not be missed.
  const { forgotten } = await store.findInLedger({ tag, id: 1n });
  return { tag, ...judgeLedger(rows, forgotten) };
}

/**
 * INVARIANT: an id that is granted or allocated again was given up in between, by a row that is older than the new one.
 * Give-backs and releases are durable before their ids go to somebody else, so they are never missing, unless rows up to
 * `forgotten` went: those are left out. Rows are taken in the order in which the ledger itself says which is newer. A row
 * that is there twice counts once.
 */
export function judgeLedger(
  all: readonly LedgerRow[],
  forgotten: bigint,
): Omit<LedgerVerdict, "tag"> {
  const once = new Map<string, LedgerRow>();
  for (const row of all) {
    const { entry, nodeId, sequence, version, firstId } = row;
    if (version <= forgotten) continue;
    const key = entry === "give-back" ? `${version} ${firstId}` : `${nodeId} ${sequence}`;
    once.set(key, row);
  }
  const rows = [...once.values()].toSorted(byAge);
  const granted = new Live();
  const allocated = new Live();
  const faults: LedgerFault[] = [];
  let faultCount = 0;
  const take = (live: Live, kind: LedgerFault["kind"], row: LedgerRow): void => {
    const older = live.add(row);
    if (older === undefined) return;
    faultCount++;
    if (faults.length === MAX_FAULTS) return;
    const first = older.firstId > row.firstId ? older.firstId : row.firstId;
    const last = older.lastId < row.lastId ? older.lastId : row.lastId;
    faults.push({ kind, first, last, rows: [older, row] });
  };
  for (const row of rows) {
    if (row.entry === "grant") take(granted, "granted twice", row);
    if (row.entry === "allocation") take(allocated, "allocated twice", row);
    if (row.entry === "give-back") granted.remove(row);
    if (row.entry === "give-back" || row.entry === "release") allocated.remove(row);
  }
  return { rows: rows.length, faults, faultCount };
}

function byAge(one: LedgerRow, other: LedgerRow): number {
  if (one.version !== other.version) return one.version < other.version ? -1 : 1;
  return one.sequence < other.sequence ? -1 : Number(one.sequence > other.sequence);
}

type Span = Pick<LedgerRow, "firstId" | "lastId">;

interface Piece {
  first: bigint;
  last: bigint;
  readonly row: LedgerRow;
}

/** Ids that somebody holds, as pieces in order, none of which overlap. New ids are nearly always above all others. */
class Live {
  readonly #pieces: Piece[] = [];

  /** Takes the ids of a row, unless somebody holds one of them: then that row is answered. */
  add(row: LedgerRow): LedgerRow | undefined {
    const at = this.#firstEndingAt(row.firstId);
    const next = this.#pieces[at];
    if (next !== undefined && next.first <= row.lastId) return next.row;
    this.#pieces.splice(at, 0, { first: row.firstId, last: row.lastId, row });
    return undefined;
  }

  remove({ firstId, lastId }: Span): void {
    const from = this.#firstEndingAt(firstId);
    let to = from;
    const left: Piece[] = [];
    for (
      let piece = this.#pieces[to];
      piece !== undefined && piece.first <= lastId;
      piece = this.#pieces[++to]
    ) {
      if (piece.first < firstId) left.push({ ...piece, last: firstId - 1n });
      if (piece.last > lastId) left.push({ ...piece, first: lastId + 1n });
    }
    this.#pieces.splice(from, to - from, ...left);
  }

  /** The first piece whose last id is at or above an id. */
  #firstEndingAt(id: bigint): number {
    let [low, high] = [0, this.#pieces.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#pieces[middle]?.last ?? 0n) < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
