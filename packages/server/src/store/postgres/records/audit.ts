import { type AuditEvent, auditShare, type AuditStore } from "@idmint/core/server";
import {
  AUDIT_COLUMNS,
  auditFromRow,
  type AuditRow,
  valuesOfAudit,
} from "../../shared/records/audit.ts";
import type { Connections, Session } from "../connections.ts";

const COLUMNS = AUDIT_COLUMNS.join(", ");
const ADD = `INSERT INTO idmint.audit (${COLUMNS})
  VALUES (${AUDIT_COLUMNS.map((_, at) => `$${at + 1}`).join(", ")}) ON CONFLICT DO NOTHING`;
const LIST = `SELECT ${COLUMNS} FROM idmint.audit
  WHERE kind = $1 AND at_ms >= $2 AND (at_ms, id) < ($3, $4) ORDER BY at_ms DESC, id DESC LIMIT $5`;
/** The second part is the newest one that is too many. */
const TRIM = `DELETE FROM idmint.audit AS a WHERE a.kind = $1 AND (a.at_ms, a.id) IN (
  SELECT o.at_ms, o.id FROM idmint.audit AS o WHERE o.kind = $1 AND (o.at_ms < $2 OR (o.at_ms, o.id) <= (
    SELECT n.at_ms, n.id FROM idmint.audit AS n WHERE n.kind = $1 ORDER BY n.at_ms DESC, n.id DESC LIMIT 1 OFFSET $3))
  ORDER BY o.at_ms, o.id LIMIT $4) RETURNING a.id`;
const COUNTS = `SELECT principal, count(*) AS events FROM idmint.audit WHERE kind = $1 GROUP BY principal`;
const TOO_MANY =
  "SELECT 1 FROM idmint.audit WHERE kind = $1 ORDER BY at_ms DESC, id DESC LIMIT 1 OFFSET $2";
const TRIM_OF = `DELETE FROM idmint.audit AS a WHERE a.kind = $1 AND (a.at_ms, a.id) IN (
  SELECT o.at_ms, o.id FROM idmint.audit AS o WHERE o.kind = $1 AND o.principal = $2 AND (o.at_ms, o.id) <= (
    SELECT n.at_ms, n.id FROM idmint.audit AS n WHERE n.kind = $1 AND n.principal = $2
    ORDER BY n.at_ms DESC, n.id DESC LIMIT 1 OFFSET $3)
  ORDER BY o.at_ms, o.id LIMIT $4) RETURNING a.id`;
/** No trail is as long. */
const ALL = String(2n ** 62n);
const END = String(2n ** 63n - 1n);

/** Writes an event in the transaction of what it tells of. */
export async function addAudit(session: Session, event: AuditEvent): Promise<void> {
  const values = valuesOfAudit(event).map((value) => session.storable(String(value)));
  await session.query({ text: ADD, values });
}

const NOW = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms";

/** The store's clock, milliseconds since 1970. */
export async function nowOf(session: Session): Promise<number> {
  const [row] = await session.query<{ now_ms: string }>({ text: NOW });
  return Number(row?.now_ms);
}

export async function recordAudit(
  connections: Connections,
  events: readonly AuditEvent[],
): Promise<void> {
  await connections.run((session) =>
    session.transaction(async () => {
      // One statement after the other on one connection.
      for (const event of events) await addAudit(session, event);
    }),
  );
}

export async function listAudit(
  connections: Connections,
  { kind, before, sinceMs, limit }: Parameters<AuditStore["listAudit"]>[0],
): Promise<readonly AuditEvent[]> {
  const place = before === undefined ? [END, ""] : [String(before.atMs), before.id];
  const values = [kind, String(sinceMs), ...place, limit];
  const rows = await connections.run((session) => session.query<AuditRow>({ text: LIST, values }));
  return rows.map(auditFromRow);
}

export async function trimAudit(
  connections: Connections,
  { kind, beforeMs, keep, limit }: Parameters<AuditStore["trimAudit"]>[0],
): Promise<number> {
  return connections.run(async (session) => {
    const trim = async (text: string, ...values: (number | string)[]): Promise<number> =>
      (await session.query({ text, values })).length;
    const old = await trim(TRIM, kind, String(beforeMs), ALL, limit);
    let left = limit - old;
    if ((await session.query({ text: TOO_MANY, values: [kind, keep] })).length === 0) return old;
    const counts = await session.query<{ principal: string; events: string }>({
      text: COUNTS,
      values: [kind],
    });
    const share = auditShare(
      counts.map(({ events }) => Number(events)),
      keep,
    );
    if (share === undefined) return old + (await trim(TRIM, kind, "0", keep, left));
    for (const { principal } of counts.filter(({ events }) => Number(events) > share)) {
      // One statement after the other on one connection.
      left -= await trim(TRIM_OF, kind, principal, share, left);
    }
    return limit - left;
  });
}
