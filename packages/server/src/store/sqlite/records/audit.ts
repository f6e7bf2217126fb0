import type { AuditEvent, AuditStore } from "@idmint/core/server";
import {
  AUDIT_COLUMNS,
  auditFromRow,
  type AuditRow,
  valuesOfAudit,
} from "../../shared/records/audit.ts";
import type { Transaction } from "../file/connection.ts";
import type { Database } from "../file/database.ts";

const COLUMNS = AUDIT_COLUMNS.join(", ");
const ADD = `INSERT INTO audit (${COLUMNS}) VALUES (${AUDIT_COLUMNS.map(() => "?").join(", ")})
  ON CONFLICT (kind, at_ms, id) DO NOTHING`;
const LIST = `SELECT ${COLUMNS} FROM audit
  WHERE kind = ? AND at_ms >= ? AND (at_ms, id) < (?, ?) ORDER BY at_ms DESC, id DESC LIMIT ?`;
const OLDEST = "SELECT at_ms FROM audit WHERE kind = ? ORDER BY at_ms, id LIMIT 1";
/** The newest one that is too many. */
const TOO_MANY = `SELECT at_ms, id FROM audit WHERE kind = ?
  ORDER BY at_ms DESC, id DESC LIMIT 1 OFFSET ?`;
const TRIM = `DELETE FROM audit WHERE kind = ?1 AND (at_ms, id) IN (SELECT at_ms, id FROM audit
  WHERE kind = ?1 AND (at_ms < ?2 OR (at_ms, id) <= (?3, ?4)) ORDER BY at_ms, id LIMIT ?5)`;
const END = 2n ** 63n - 1n;

/** Writes an event in the transaction of what it tells of. */
export function addAudit(transaction: Transaction, event: AuditEvent): void {
  transaction.run(ADD, ...valuesOfAudit(event));
}

export function recordAudit(
  database: Database,
  deadlineMs: number,
  events: readonly AuditEvent[],
): void {
  database.write(deadlineMs, (transaction) => {
    for (const event of events) addAudit(transaction, event);
  });
}

export function listAudit(
  database: Database,
  deadlineMs: number,
  { kind, before, sinceMs, limit }: Parameters<AuditStore["listAudit"]>[0],
): readonly AuditEvent[] {
  const place = before === undefined ? [END, ""] : [BigInt(before.atMs), before.id];
  return database.read(deadlineMs, (transaction) =>
    transaction
      .all(LIST, kind, BigInt(sinceMs), ...place, limit)
      .map((row) => auditFromRow(row as unknown as AuditRow)),
  );
}

export function trimAudit(
  database: Database,
  deadlineMs: number,
  { kind, beforeMs, keep, limit }: Parameters<AuditStore["trimAudit"]>[0],
): number {
  // Most of the time there is nothing to remove, and nobody has to wait for a lock.
  const found = database.read(deadlineMs, (transaction) => {
    const oldest = transaction.get(OLDEST, kind)?.["at_ms"] as bigint | undefined;
    const last = transaction.get(TOO_MANY, kind, keep);
    return (oldest !== undefined && oldest < BigInt(beforeMs)) || last !== undefined
      ? { last }
      : undefined;
  });
  if (found === undefined) return 0;
  const { last } = found;
  const place = [
    (last?.["at_ms"] as bigint | undefined) ?? -1n,
    (last?.["id"] as string | undefined) ?? "",
  ];
  return database.write(deadlineMs, (transaction) =>
    transaction.run(TRIM, kind, BigInt(beforeMs), ...place, limit),
  );
}
