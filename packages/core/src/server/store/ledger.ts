/**
 * What a row of the ledger says of its ids, all of one tag:
 * - `grant`: the store granted them to a server.
 * - `allocation`: the server handed them to a client that issues them itself.
 * - `release`: the client gave them back to the server, which hands them out again.
 * - `give-back`: the server gave them back to the store, which grants them again.
 * - `gap`: rows of the server about some of them were lost.
 */
export type LedgerEntry = "allocation" | "gap" | "give-back" | "grant" | "release";

export interface LedgerRow {
  readonly entry: LedgerEntry;
  readonly tag: string;
  readonly firstId: bigint;
  readonly lastId: bigint;
  /**
   * A version of the tag that the store had reached when this happened. It is at least that of the grant of these ids; of a
   * `grant` it is exactly that, of a `give-back` the one that the give-back raised the row to.
   */
  readonly version: bigint;
  readonly epoch: bigint;
  /** The server: the random name of its process, and its stable name. */
  readonly nodeId: string;
  readonly server: string;
  /** Counts the rows of the process; 0n for a give-back, which the store writes. */
  readonly sequence: bigint;
  /** What the client calls itself; a claim. Empty where it told no name, and in rows without a client. */
  readonly instance: string;
  /** Who the client was proved to be; empty: nobody. */
  readonly principal: string;
  /** By the server's wall clock, milliseconds since 1970. */
  readonly atMs: number;
}

/** A row, and where it stands in its database: later rows have higher positions. */
export interface PlacedLedgerRow extends LedgerRow {
  readonly position: bigint;
}

/** How much of the ledger a database keeps. The oldest rows go first. */
export interface LedgerLimits {
  readonly keepForMs: number;
  readonly maxRows: number;
}

/** What the ledger has of one id. */
export interface LedgerFindings {
  /** The rows about it, the highest versions first; at most MAX_FOUND. */
  readonly rows: readonly LedgerRow[];
  /** Rows of the tag up to this version are not all there any more; 0n: all are. */
  readonly forgotten: bigint;
}

/** Where a list of the ledger goes on. */
export interface LedgerPlace {
  /** Empty for a store that is one database. */
  readonly database: string;
  readonly position: bigint;
}

export interface LedgerPage {
  readonly rows: readonly PlacedLedgerRow[];
  /** Undefined: these were the last. */
  readonly next: LedgerPlace | undefined;
}

/** Most rows of one `recordLedger`. */
export const MAX_LEDGER_BATCH = 1_000;
/** Most rows that one `findInLedger` answers. */
export const MAX_FOUND = 64;
/** Most rows that one `recordLedger` lets go of. */
export const MAX_FORGOTTEN_ROWS = 2_000;

/**
 * Who was given which ids. Nothing that is issued rests on it.
 *
 * INVARIANTS
 * 1. Rows are durable before `recordLedger` is answered, and come back with whatever a restored store has of them.
 * 2. Whoever lets go of rows remembers, in the same transaction, the highest version among them as `forgotten`. An accept
 *    does so for every tag, since rows that the store lost may have said that ids went to somebody else.
 * 3. A give-back that names its server writes its row in its own transaction.
 */
export interface LedgerStore {
  /** Writes rows, in their order, and lets go of old ones. Written again after an unknown outcome they say the same twice. */
  recordLedger(rows: readonly LedgerRow[], limits: LedgerLimits): Promise<void>;
  findInLedger(query: { readonly tag: string; readonly id: bigint }): Promise<LedgerFindings>;
  /** The rows of a tag, oldest first, after `after` (undefined: from the first). At most `limit`, perhaps none before the last page. */
  listLedger(query: {
    readonly tag: string;
    readonly after: LedgerPlace | undefined;
    readonly limit: number;
  }): Promise<LedgerPage>;
}
