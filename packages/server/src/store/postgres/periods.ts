import { type EndedPeriod, type PeriodStore, storeWentBack } from "@idmint/core/server";
import { MAX_FORGOTTEN, MAX_OTHER_PERIODS } from "../shared/period.ts";
import type { Connections } from "./connections.ts";
import { proof } from "./identity.ts";

/** SQL: the first day (YYYY-MM-DD) of the period that an instant falls into. All arguments are SQL; null makes null. */
export function periodAt(unit: string, timeZone: string, at: string): string {
  return `to_char(date_trunc(${unit}, ${at} AT TIME ZONE ${timeZone}), 'YYYY-MM-DD')`;
}

/**
 * SQL: when the period with this first day (YYYY-MM-DD) ends, in milliseconds since 1970: the first instant of the next
 * one's first day. All arguments are SQL.
 *
 * Where midnight comes twice, AT TIME ZONE answers the second one; where the offset of the day before makes an earlier
 * instant that is of that day too, it is the first.
 */
export function periodEnd(unit: string, timeZone: string, start: string): string {
  return `(SELECT floor(extract(epoch FROM CASE
      WHEN f.first < l.last AND (f.first AT TIME ZONE ${timeZone}) >= n.midnight THEN f.first
      ELSE l.last END) * 1000)::bigint
    FROM (SELECT date_trunc(${unit}, (${start})::timestamp) + ('1 ' || ${unit})::interval) AS n (midnight),
    LATERAL (SELECT n.midnight AT TIME ZONE ${timeZone}) AS l (last),
    LATERAL (SELECT (n.midnight
      - (((l.last - interval '24 hours') AT TIME ZONE ${timeZone})
        - ((l.last - interval '24 hours') AT TIME ZONE 'UTC'))) AT TIME ZONE 'UTC') AS f (first))`;
}

/**
 * SQL: what ends the periods of `rows`, common table expressions `ended` and `forgotten`. `rows` is a relation
 * (name, period_start, floor, keep_for_ms, now) of tags whose row is locked and begins another period. What is written is
 * not forgotten in the same statement, which PostgreSQL would do in any order.
 */
export function endPeriods(rows: string): string {
  return `ended AS (
  INSERT INTO idmint.period (tag, start, last_id, ended_at_ms)
  SELECT e.name, e.period_start, e.floor, floor(extract(epoch FROM e.now) * 1000)::bigint
  FROM ${rows} AS e WHERE e.floor > 0
  ON CONFLICT (tag, start) DO UPDATE SET last_id = excluded.last_id, ended_at_ms = excluded.ended_at_ms
), forgotten AS (
  DELETE FROM idmint.period AS p USING ${rows} AS e CROSS JOIN LATERAL (
    SELECT o.start FROM idmint.period AS o
    WHERE o.tag = e.name AND o.start <> e.period_start
      AND o.ended_at_ms < floor(extract(epoch FROM e.now) * 1000)::bigint - e.keep_for_ms
    ORDER BY o.start LIMIT ${MAX_FORGOTTEN}
  ) AS old WHERE p.tag = e.name AND p.start = old.start
)`;
}

/** SQL: the last id of a period of a row (as `row`) that is in another one, or 0 where the row knows none. */
export function lastIdOf(row: string, start: string): string {
  return `coalesce((${row}.other_periods::jsonb ->> ${start})::bigint, 0)`;
}

/** SQL: the other periods of a row (as `row`) that is in its period no longer: those with the latest first days. */
export function otherPeriods(row: string): string {
  return `(SELECT jsonb_object_agg(k.key, k.value)::text FROM (
      SELECT e.key, e.value FROM jsonb_each_text(
        coalesce(${row}.other_periods, '{}')::jsonb || jsonb_build_object(${row}.period_start, ${row}.floor::text)) AS e
      ORDER BY e.key COLLATE "C" DESC LIMIT ${MAX_OTHER_PERIODS}) AS k)`;
}

const LIST = {
  name: "idmint-periods-1",
  text: `WITH ${proof("'{}'::text[]")}, page AS (
  SELECT o.start, o.last_id, o.ended_at_ms FROM idmint.period AS o
  JOIN idmint.tag AS t ON t.name = o.tag
  WHERE o.tag = $1 AND o.start <> t.period_start AND ($2 = '' OR o.start < $2)
    AND o.ended_at_ms >= floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - t.keep_for_ms
  ORDER BY o.start DESC LIMIT $3
)
SELECT p.fenced, o.start, o.last_id, o.ended_at_ms
FROM proof AS p LEFT JOIN page AS o ON true ORDER BY o.start DESC`,
};

interface PeriodRow {
  readonly fenced: string;
  readonly start: string | null;
  readonly last_id: string;
  readonly ended_at_ms: string;
}

/** Ended periods of a tag, newest first, without those that its settings say to forget. */
export async function listPeriods(
  connections: Connections,
  { tag, before, limit }: Parameters<PeriodStore["listPeriods"]>[0],
): Promise<readonly EndedPeriod[]> {
  const values = [tag, before, limit];
  const rows = await connections.run((session) => session.query<PeriodRow>({ ...LIST, values }));
  const [first] = rows;
  if (first === undefined) throw storeWentBack("the store has lost its identity");
  if (first.fenced !== "") throw storeWentBack(first.fenced);
  return rows.flatMap(({ start, last_id, ended_at_ms }) =>
    start === null ? [] : [{ start, lastId: BigInt(last_id), endedAtMs: Number(ended_at_ms) }],
  );
}
