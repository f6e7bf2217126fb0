import { type EndedPeriod, type PeriodStore, storeWentBack } from "@idmint/core/server";
import type { Database } from "./file/database.ts";

const LIST = `SELECT p.start, p.last_id, p.ended_at_ms FROM period AS p JOIN tag AS t ON t.name = p.tag
  WHERE p.tag = ?1 AND p.start <> t.period_start AND (?2 = '' OR p.start < ?2) AND p.ended_at_ms >= ?3 - t.keep_for_ms
  ORDER BY p.start DESC LIMIT ?4`;

/** Ended periods of a tag, newest first, without those that its settings say to forget. */
export function listPeriods(
  database: Database,
  deadlineMs: number,
  query: Parameters<PeriodStore["listPeriods"]>[0],
): readonly EndedPeriod[] {
  return database.read(deadlineMs, (transaction, fenced) => {
    if (fenced !== "") throw storeWentBack(fenced);
    const rows = transaction.all(LIST, query.tag, query.before, database.now(), query.limit);
    return rows.map((row) => ({
      start: String(row["start"]),
      lastId: row["last_id"] as bigint,
      endedAtMs: Number(row["ended_at_ms"]),
    }));
  });
}
