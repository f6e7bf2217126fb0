import type { GiveBackRequest, LedgerEntry, LedgerRow, PlacedLedgerRow } from "@idmint/core/server";

/** The columns of a row, in the order of `valuesOfLedger`. */
export const LEDGER_COLUMNS =
  "tag, entry, width, first_id, last_id, version, epoch, node_id, server, sequence, instance, principal, at_ms";

/** A row of the table, whatever a driver makes of integers. */
export interface LedgerTableRow {
  readonly position: bigint | string;
  readonly tag: string;
  readonly entry: string;
  readonly first_id: bigint | string;
  readonly last_id: bigint | string;
  readonly version: bigint | string;
  readonly epoch: bigint | string;
  readonly node_id: string;
  readonly server: string;
  readonly sequence: bigint | string;
  readonly instance: string;
  readonly principal: string;
  readonly at_ms: bigint | string;
}

/** The most bits that a range has. */
export const MAX_WIDTH = 63;

/**
 * How many bits the length of a range has: `last − first < 2^width`. An id x is in a range of one width only if that begins
 * after x − 2^width, so few rows of each width have to be looked at.
 */
export function widthOf(firstId: bigint, lastId: bigint): number {
  const length = lastId - firstId;
  return length === 0n ? 0 : length.toString(2).length;
}

export function valuesOfLedger(row: LedgerRow): readonly (bigint | number | string)[] {
  const { tag, entry, firstId, lastId, version, epoch } = row;
  const range = [tag, entry, widthOf(firstId, lastId), firstId, lastId, version, epoch] as const;
  const { nodeId, server, sequence, instance, principal, atMs } = row;
  return [...range, nodeId, server, sequence, instance, principal, Math.floor(atMs)];
}

export function ledgerFromRow(row: LedgerTableRow): PlacedLedgerRow {
  return {
    position: BigInt(row.position),
    tag: row.tag,
    entry: row.entry as LedgerEntry,
    firstId: BigInt(row.first_id),
    lastId: BigInt(row.last_id),
    version: BigInt(row.version),
    epoch: BigInt(row.epoch),
    nodeId: row.node_id,
    server: row.server,
    sequence: BigInt(row.sequence),
    instance: row.instance,
    principal: row.principal,
    atMs: Number(row.at_ms),
  };
}

/** The row of a give-back. */
export function givenBack(
  { tag, from, to, version }: GiveBackRequest,
  giver: NonNullable<GiveBackRequest["giver"]>,
  epoch: bigint,
): LedgerRow {
  const range = { tag, firstId: from, lastId: to, version: version + 1n, epoch };
  return { entry: "give-back", ...range, ...giver, sequence: 0n, instance: "", principal: "" };
}
