import { type AuditEvent, auditShare, type AuditStore } from "@idmint/core/server";
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
/** The newest one that is too many, whoever's they are. */
const TOO_MANY = `SELECT at_ms, id FROM audit WHERE kind = ?
  ORDER BY at_ms DESC, id DESC LIMIT 1 OFFSET ?`;
const TRIM = `DELETE FROM audit WHERE kind = ?1 AND (at_ms, id) IN (SELECT at_ms, id FROM audit
  WHERE kind = ?1 AND (at_ms < ?2 OR (at_ms, id) <= (?3, ?4)) ORDER BY at_ms, id LIMIT ?5)`;
const COUNTS = "SELECT principal, count(*) AS events FROM audit WHERE kind = ? GROUP BY principal";
const TRIM_OF = `DELETE FROM audit WHERE kind = ?1 AND (at_ms, id) IN (SELECT at_ms, id FROM audit
  WHERE kind = ?1 AND principal = ?2 AND (at_ms, id) <= (SELECT at_ms, id FROM audit
    WHERE kind = ?1 AND principal = ?2 ORDER BY at_ms DESC, id DESC LIMIT 1 OFFSET ?3)
  ORDER BY at_ms, id LIMIT ?4)`;
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
  const isNeeded = database.read(deadlineMs, (transaction) => {
    const oldest = transaction.get(OLDEST, kind)?.["at_ms"] as bigint | undefined;
    const isOld = oldest !== undefined && oldest < BigInt(beforeMs);
    return isOld || transaction.get(TOO_MANY, kind, keep) !== undefined;
  });
  if (!isNeeded) return 0;
  return database.write(deadlineMs, (transaction) => {
    const old = transaction.run(TRIM, kind, BigInt(beforeMs), -1n, "", limit);
    return old + trimTooMany(transaction, kind, keep, limit - old);
  });
}

function trimTooMany(transaction: Transaction, kind: string, keep: number, limit: number): number {
  const last = transaction.get(TOO_MANY, kind, keep);
  if (last === undefined) return 0;
  const counts = transaction.all(COUNTS, kind);
  const eventsOf = (row: (typeof counts)[number]): number => Number(row["events"]);
  const share = auditShare(counts.map(eventsOf), keep);
  if (share === undefined) {
    const place = [last["at_ms"] as bigint, last["id"] as string] as const;
    return transaction.run(TRIM, kind, 0n, ...place, limit);
  }
  let left = limit;
  for (const row of counts.filter((each) => eventsOf(each) > share)) {
    left -= transaction.run(TRIM_OF, kind, row["principal"] as string, share, left);
  }
  return limit - left;
}
