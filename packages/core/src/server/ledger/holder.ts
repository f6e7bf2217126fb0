import type { LedgerEntry, LedgerFindings, LedgerRow } from "../store/ledger.ts";

/**
 * Who was given an id, by what the ledger has of it. Pure.
 *
 * INVARIANT: a name is told only if nobody else can have been given the id later. Ids change hands in three ways, and each
 * leaves a durable row before the next holder has them:
 * - a client releases them to its server: the server waits for the row `release`;
 * - a server gives them back to the store: the row `give-back` is in the same transaction, with a version above all before;
 * - an operator accepts a store that went back: all rows up to the tag's version of then are forgotten.
 * So of all rows about an id the one with the highest version is the newest, and of rows of one version, which are of one
 * process, the one with the highest sequence. Rows that were lost can only be newer than that one, and have no other holder
 * unless one of the three rows lies between. Where that order does not say which row is the newest, nobody is named.
 */
export interface Holder {
  /** The server that had the id; undefined: it is not known. */
  readonly server: LedgerRow | undefined;
  /** The client that the server gave it to; undefined: it is not known. */
  readonly client: LedgerRow | undefined;
  readonly why: HolderWhy;
}

/**
 * Why that much is known and no more:
 * - ALLOCATED: to this client.
 * - GRANTED: to this server; it issued the id by itself, or still has it, or the row of a client was lost.
 * - RELEASED: a client gave it back to this server; whom it went to after that is not known.
 * - GIVEN_BACK: a server gave it back to the store; whom it went to after that is not known.
 * - LOST: this server lost rows about it.
 * - FORGOTTEN: rows about it are not kept any more, or were of a store that went back.
 * - CONTRADICTION: rows say different things, and none is the newest.
 * - UNKNOWN: there is no row.
 */
type HolderWhy =
  | "ALLOCATED"
  | "CONTRADICTION"
  | "FORGOTTEN"
  | "GIVEN_BACK"
  | "GRANTED"
  | "LOST"
  | "RELEASED"
  | "UNKNOWN";

/** What it means that a row of this kind is the newest. */
const WHYS: Readonly<Record<LedgerEntry, HolderWhy>> = {
  allocation: "ALLOCATED",
  gap: "LOST",
  "give-back": "GIVEN_BACK",
  grant: "GRANTED",
  release: "RELEASED",
};

const NOBODY = { server: undefined, client: undefined };

export function holderOf({ rows, forgotten }: LedgerFindings): Holder {
  const kept = rows.filter(({ version }) => version > forgotten);
  const newest = kept.reduce<LedgerRow | undefined>(
    (found, row) => (found === undefined || isNewer(row, found) ? row : found),
    undefined,
  );
  if (newest === undefined) {
    return { ...NOBODY, why: rows.length > 0 || forgotten > 0n ? "FORGOTTEN" : "UNKNOWN" };
  }
  const isContradicted = kept.some(
    ({ version, nodeId }) => version === newest.version && nodeId !== newest.nodeId,
  );
  if (isContradicted) return { ...NOBODY, why: "CONTRADICTION" };
  return heldBy(newest, kept);
}

function heldBy(newest: LedgerRow, kept: readonly LedgerRow[]): Holder {
  const why = WHYS[newest.entry];
  if (why === "GIVEN_BACK" || why === "LOST") return { ...NOBODY, why };
  const granted = kept.find(({ entry, nodeId }) => entry === "grant" && nodeId === newest.nodeId);
  const server = newest.entry === "grant" ? newest : (granted ?? newest);
  return { server, client: newest.entry === "allocation" ? newest : undefined, why };
}

function isNewer(one: LedgerRow, other: LedgerRow): boolean {
  if (one.version !== other.version) return one.version > other.version;
  return one.sequence > other.sequence;
}
