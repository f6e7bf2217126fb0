// The ledger of a MemoryStore.
import {
  type CallArgs,
  type LedgerFindings,
  type LedgerPage,
  type LedgerRow,
  MAX_FORGOTTEN_ROWS,
  MAX_FOUND,
  type PlacedLedgerRow,
} from "@idmint/core/server";
import type { MemoryDatabase, StoredLedgerRow } from "./database.ts";

export function recordLedger(
  database: MemoryDatabase,
  ...[rows, { keepForMs, maxRows }]: CallArgs["recordLedger"]
): void {
  for (const row of rows) writeLedger(database, row);
  const last = database.ledger.at(-1)?.position ?? 0n;
  const lastGone = last - BigInt(maxRows);
  const keptSinceMs = database.now() - keepForMs;
  const isOld = ({ position, storedAtMs }: (typeof database.ledger)[number]): boolean =>
    position <= lastGone || storedAtMs < keptSinceMs;
  const oldest = database.ledger.slice(0, MAX_FORGOTTEN_ROWS);
  const gone = oldest.findLastIndex(isOld) + 1;
  for (const { tag, version } of oldest.slice(0, gone)) forget(database, tag, version);
  database.ledger.splice(0, gone);
}

export function writeLedger(database: MemoryDatabase, row: LedgerRow): void {
  database.ledgerPosition++;
  const placed = { position: database.ledgerPosition, storedAtMs: database.now() };
  database.ledger.push({ ...row, ...placed });
}

export function forget(database: MemoryDatabase, tag: string, version: bigint): void {
  const known = database.ledgerForgotten.get(tag) ?? 0n;
  if (version > known) database.ledgerForgotten.set(tag, version);
}

export function findInLedger(
  database: MemoryDatabase,
  ...[{ tag, id }]: CallArgs["findInLedger"]
): LedgerFindings {
  const rows = database.ledger
    .filter((row) => row.tag === tag && row.firstId <= id && row.lastId >= id)
    .toSorted((a, b) => Number(b.version - a.version) || Number(b.sequence - a.sequence));
  return {
    rows: rows.slice(0, MAX_FOUND).map(placedRow),
    forgotten: database.ledgerForgotten.get(tag) ?? 0n,
  };
}

export function listLedger(
  database: MemoryDatabase,
  ...[{ tag, after, limit }]: CallArgs["listLedger"]
): LedgerPage {
  const from = after?.position ?? 0n;
  const rows = database.ledger
    .filter((row) => row.tag === tag && row.position > from)
    .slice(0, limit)
    .map(placedRow);
  const last = rows.at(-1);
  const isMore = rows.length === limit && last !== undefined;
  return { rows, next: isMore ? { database: "", position: last.position } : undefined };
}

function placedRow({ storedAtMs, ...row }: StoredLedgerRow): PlacedLedgerRow {
  void storedAtMs;
  return row;
}
