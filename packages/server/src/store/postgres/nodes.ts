import {
  type AuditNote,
  type ChangeOptions,
  lostNodes,
  MAX_NODES,
  type NodeRowKey,
  type PartIssuing,
  type Traffic,
  trafficAfter,
} from "@idmint/core/server";
import { issuingChanged, nodeForgotten, trafficChanged } from "../shared/records/audit.ts";
import { issuingSet } from "../shared/issuing.ts";
import { NODE_COLUMNS, renewedColumns, valuesOfNode } from "../shared/node-row.ts";
import { TRAFFIC_COLUMNS, trafficFromRow, type TrafficRow } from "../shared/traffic-row.ts";
import { addAudit, nowOf } from "./records/audit.ts";
import type { Connections, Session } from "./connections.ts";
import { lockStore } from "./tags.ts";

const COLUMNS = NODE_COLUMNS.join(", ");

/**
 * SQL: the common table expression `renewal`, which writes the server's row and answers one row if it did. `places` are the
 * parameters of its columns, the first of them null where there is nothing to renew; `expected` are those of what the row must
 * be (hosts/own-row.ts): a renewal of a row that went back would wipe out the proof of that.
 *
 * It is durable on this server only, without waiting for a standby: after a fail-over the store is accepted first, and
 * `accept` reckons with servers whose rows were lost.
 */
export function renewalOf(places: readonly string[], expected: readonly string[]): string {
  const [id = ""] = places;
  const [renewals = "", history = "", mayMake = ""] = expected;
  return `commit_level AS MATERIALIZED (
  SELECT set_config('synchronous_commit', 'local', true) AS level
), expected AS MATERIALIZED (
  SELECT CASE WHEN s.incarnation || ' ' || s.identity = ${history}::text THEN ${renewals}::bigint ELSE 0 END AS renewals,
    s.incarnation || ' ' || s.identity <> ${history}::text OR ${mayMake}::boolean AS may_make
  FROM idmint.store AS s
), renewal AS (
  INSERT INTO idmint.node AS n (${COLUMNS})
  SELECT ${places.join(", ")} FROM proof AS p CROSS JOIN commit_level AS c CROSS JOIN expected AS x
  WHERE ${id} IS NOT NULL AND p.fenced = '' AND c.level <> ''
    AND (x.may_make AND (SELECT count(*) FROM idmint.node) < ${MAX_NODES}
      OR EXISTS (SELECT FROM idmint.node AS o WHERE o.id = ${id}))
  ON CONFLICT (id) DO UPDATE SET ${renewedColumns("n", "greatest")}
    WHERE n.renewals >= (SELECT x.renewals FROM expected AS x)
  RETURNING n.renewals
)`;
}

/** SQL types of the columns, in their order. */
export const NODE_TYPES: readonly string[] = [
  "text",
  "text",
  "text",
  "text",
  "text",
  "bigint",
  "bigint",
  "bigint",
  "text",
  "bigint",
  "bigint",
  "boolean",
];

/** SQL: all rows as one JSON array; 64-bit integers as text. */
export const NODES_AS_JSON: string = `(SELECT coalesce(json_agg(json_build_object(${NODE_COLUMNS.map(
  (column, at) => `'${column}', o.${column}${NODE_TYPES[at] === "bigint" ? "::text" : ""}`,
).join(", ")})), '[]') FROM idmint.node AS o)`;

const FORGET = `DELETE FROM idmint.node AS n USING unnest($1::text[], $2::bigint[]) AS k (id, renewals)
  WHERE n.id = k.id AND n.renewals = coalesce(k.renewals, n.renewals) RETURNING n.id`;

export async function forgetNodes(
  connections: Connections,
  keys: readonly NodeRowKey[],
  by?: AuditNote,
): Promise<number> {
  const values = [
    keys.map(({ id }) => id),
    keys.map(({ renewals }) => (renewals === undefined ? null : String(renewals))),
  ];
  const [first] = keys;
  if (by === undefined || first === undefined) {
    return (await connections.run((session) => session.query({ text: FORGET, values }))).length;
  }
  return connections.run((session) =>
    session.transaction(async () => {
      const rows = await session.query({ text: FORGET, values });
      if (rows.length > 0)
        await addAudit(session, nodeForgotten(by, await nowOf(session), first.id));
      return rows.length;
    }),
  );
}

const LONGEST = `SELECT coalesce(max(max_offline_ms), 0)::text AS longest,
  coalesce(bool_or(max_offline_ms IS NULL), false) AS is_endless FROM idmint.node`;
const ADD = `INSERT INTO idmint.node (${COLUMNS}) VALUES (${NODE_COLUMNS.map((_, at) => `$${at + 1}`).join(", ")})
  ON CONFLICT (id) DO NOTHING`;

/** See lostNodes. */
export async function addLostNodes(
  session: Session,
  incarnation: string,
  maxOfflineMs: number | null,
): Promise<void> {
  const [known] = await session.query<{ longest: string; is_endless: boolean }>({ text: LONGEST });
  const isEndless = maxOfflineMs === null || known?.is_endless === true;
  const longest = Math.max(maxOfflineMs ?? 0, Number(known?.longest ?? 0));
  const row = lostNodes(incarnation, isEndless ? undefined : longest);
  const values = valuesOfNode(row).map((value) => (value === null ? null : String(value)));
  await session.query({ text: ADD, values });
}

const TRAFFIC = TRAFFIC_COLUMNS.join(", ");
/** Writers wait for each other, and polls for nobody. */
const LOCK_TRAFFIC = "LOCK TABLE idmint.traffic IN SHARE ROW EXCLUSIVE MODE";
const READ_TRAFFIC = `SELECT ${TRAFFIC} FROM idmint.traffic`;
const REMOVE_TRAFFIC = "DELETE FROM idmint.traffic WHERE server = ANY ($1::text[])";
const WRITE_TRAFFIC = `INSERT INTO idmint.traffic (${TRAFFIC}) VALUES ($1, $2, $3, $4)
  ON CONFLICT (server) DO UPDATE SET
    weight = excluded.weight, draining = excluded.draining, revision = excluded.revision`;

/** SQL: all rows as one JSON array; 64-bit integers as text. */
export const TRAFFIC_AS_JSON: string = `(SELECT coalesce(json_agg(json_build_object(
  'server', f.server, 'weight', f.weight, 'draining', f.draining, 'revision', f.revision::text)), '[]')
  FROM idmint.traffic AS f)`;

/** See trafficAfter. */
export async function setTraffic(
  connections: Connections,
  wanted: Traffic,
  by?: AuditNote,
): Promise<Traffic> {
  return connections.run((session) =>
    session.transaction(async () => {
      await session.query({ text: LOCK_TRAFFIC });
      const rows = (await session.query<TrafficRow>({ text: READ_TRAFFIC })).map(trafficFromRow);
      const { row, isWritten, removed } = trafficAfter(rows, wanted);
      if (removed.length > 0) await session.query({ text: REMOVE_TRAFFIC, values: [removed] });
      const { server, weight, isDraining, revision } = row;
      const values = [server, weight, isDraining, String(revision)];
      if (!isWritten) return row;
      await session.query({ text: WRITE_TRAFFIC, values });
      const old = rows.find((one) => one.server === server);
      if (by !== undefined) {
        await addAudit(session, trafficChanged(by, await nowOf(session), old, row));
      }
      return row;
    }),
  );
}

const WRITE_ISSUING = `UPDATE idmint.store SET revision = $1::bigint, issuing_revision = $1::bigint,
  stopped_at_ms = $2::bigint, written_by = pg_current_xact_id()::xid`;

export async function setIssuing(
  connections: Connections,
  isStopped: boolean,
  options?: ChangeOptions,
): Promise<readonly PartIssuing[]> {
  return connections.run((session) =>
    session.transaction(async () => {
      const { stamp, issuing: old } = await lockStore(session, connections);
      const { issuing, changed } = issuingSet(old, isStopped, stamp, options);
      const { revision, stoppedAtMs } = issuing;
      const values = [String(revision), stoppedAtMs === undefined ? null : String(stoppedAtMs)];
      if (changed) await session.query({ text: WRITE_ISSUING, values });
      const by = changed ? options?.by : undefined;
      if (by !== undefined) await addAudit(session, issuingChanged(by, stamp.nowMs, isStopped));
      return [{ name: "", ...issuing }];
    }),
  );
}
