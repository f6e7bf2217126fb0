import {
  type LedgerFindings,
  type LedgerLimits,
  type LedgerPage,
  type LedgerPlace,
  type LedgerRow,
  MAX_FORGOTTEN_ROWS,
  MAX_FOUND,
} from "@idmint/core/server";
import {
  LEDGER_COLUMNS,
  ledgerFromRow,
  type LedgerTableRow,
  MAX_WIDTH,
  valuesOfLedger,
} from "../../shared/records/ledger-row.ts";
import type { Transaction } from "../file/connection.ts";
import type { Database } from "../file/database.ts";

const PLACES = LEDGER_COLUMNS.split(", ")
  .map(() => "?")
  .join(", ");
const WRITE = `INSERT INTO ledger (${LEDGER_COLUMNS}, stored_at_ms) VALUES (${PLACES}, ?)`;
const LAST = "SELECT max(position) AS position FROM ledger";
/** Up to where the oldest rows are too old or too many; ?1: the last position to go, ?2: the time before which they go. */
const OLD = `SELECT max(position) AS position FROM (
  SELECT position, stored_at_ms FROM ledger ORDER BY position LIMIT ${MAX_FORGOTTEN_ROWS})
  WHERE position <= ?1 OR stored_at_ms < ?2`;
const FORGET = `INSERT INTO ledger_forgotten (tag, version)
  SELECT tag, max(version) FROM ledger WHERE position <= ? GROUP BY tag
  ON CONFLICT (tag) DO UPDATE SET version = max(version, excluded.version)`;
const DELETE = "DELETE FROM ledger WHERE position <= ?";
const FORGET_ALL = `INSERT INTO ledger_forgotten (tag, version) SELECT name, version FROM tag WHERE true
  ON CONFLICT (tag) DO UPDATE SET version = max(version, excluded.version)`;
const FIND = `WITH RECURSIVE w (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM w WHERE n < ${MAX_WIDTH})
  SELECT l.position, ${LEDGER_COLUMNS} FROM w CROSS JOIN ledger AS l
  WHERE l.tag = ?1 AND l.width = w.n AND l.first_id <= ?2 AND l.last_id >= ?2
    AND l.first_id > CASE WHEN w.n = ${MAX_WIDTH} THEN -1 ELSE ?2 - (1 << w.n) END
  ORDER BY l.version DESC, l.sequence DESC LIMIT ${MAX_FOUND}`;
const FORGOTTEN = "SELECT version FROM ledger_forgotten WHERE tag = ?";
const LIST = `SELECT position, ${LEDGER_COLUMNS} FROM ledger WHERE position > ? AND tag = ?
  ORDER BY position LIMIT ?`;

export function recordLedger(
  database: Database,
  deadlineMs: number,
  rows: readonly LedgerRow[],
  { keepForMs, maxRows }: LedgerLimits,
): void {
  database.write(deadlineMs, (transaction) => {
    const nowMs = Math.floor(database.now());
    for (const row of rows) writeLedger(transaction, row, nowMs);
    const last = transaction.get(LAST)?.["position"] as bigint | null;
    if (last === null) return;
    const old = transaction.get(OLD, last - BigInt(maxRows), BigInt(Math.floor(nowMs - keepForMs)));
    const position = (old?.["position"] ?? null) as bigint | null;
    if (position === null) return;
    transaction.run(FORGET, position);
    transaction.run(DELETE, position);
  });
}

/** Writes a row within a transaction. */
export function writeLedger(transaction: Transaction, row: LedgerRow, nowMs: number): void {
  transaction.run(WRITE, ...valuesOfLedger(row), nowMs);
}

/** Nothing of what the ledger has of any tag is known to be the newest any more. */
export function forgetLedger(transaction: Transaction): void {
  transaction.run(FORGET_ALL);
}

export function findInLedger(
  database: Database,
  deadlineMs: number,
  { tag, id }: { readonly tag: string; readonly id: bigint },
): LedgerFindings {
  return database.read(deadlineMs, (transaction) => ({
    rows: transaction.all(FIND, tag, id).map(rowFrom),
    forgotten: (transaction.get(FORGOTTEN, tag)?.["version"] ?? 0n) as bigint,
  }));
}

export function listLedger(
  database: Database,
  deadlineMs: number,
  { tag, after, limit }: { tag: string; after: LedgerPlace | undefined; limit: number },
): LedgerPage {
  return database.read(deadlineMs, (transaction) => {
    const rows = transaction.all(LIST, after?.position ?? 0n, tag, limit).map(rowFrom);
    const last = rows.at(-1);
    const isMore = rows.length === limit && last !== undefined;
    return { rows, next: isMore ? { database: "", position: last.position } : undefined };
  });
}

function rowFrom(row: Record<string, unknown>): ReturnType<typeof ledgerFromRow> {
  return ledgerFromRow(row as unknown as LedgerTableRow);
}
