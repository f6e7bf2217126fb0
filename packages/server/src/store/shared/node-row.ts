import type { NodeRenewal, NodeRow } from "@idmint/core/server";

/** 64-bit integers come as bigint from SQLite and as decimal text from PostgreSQL. */
type Int = bigint | string;

/** A row of the table `node`; the same columns in every backend. */
export interface NodeTableRow {
  readonly id: string;
  readonly instance: string;
  readonly address: string;
  readonly version: string;
  readonly zone: string;
  readonly started_at_ms: Int;
  readonly max_offline_ms: Int | null;
  readonly renewals: Int;
  readonly incarnation: string;
  readonly obeyed: Int;
  readonly traffic: Int;
  /** 1 or 0 in SQLite and etcd. */
  readonly proved: Int | boolean;
}

/** The columns of NodeTableRow, in the order of `valuesOfRenewal`. */
export const NODE_COLUMNS: readonly (keyof NodeTableRow)[] = [
  "id",
  "instance",
  "address",
  "version",
  "zone",
  "started_at_ms",
  "max_offline_ms",
  "renewals",
  "incarnation",
  "obeyed",
  "traffic",
  "proved",
];

export function nodeFromRow(row: NodeTableRow): NodeRow {
  const { id, instance, address, version, zone, incarnation } = row;
  return {
    id,
    instance,
    address,
    version,
    zone,
    startedAtMs: Number(row.started_at_ms),
    maxOfflineMs: row.max_offline_ms === null ? undefined : Number(row.max_offline_ms),
    renewals: BigInt(row.renewals),
    incarnation,
    obeyed: BigInt(row.obeyed),
    traffic: BigInt(row.traffic),
    isProved: row.proved === true || String(row.proved) === "1",
  };
}

export function valuesOfNode(row: NodeRow): (string | bigint | null)[] {
  const { id, instance, address, version, zone, startedAtMs, maxOfflineMs } = row;
  return [
    id,
    instance,
    address,
    version,
    zone,
    BigInt(Math.round(startedAtMs)),
    maxOfflineMs === undefined ? null : BigInt(maxOfflineMs),
    row.renewals,
    row.incarnation,
    row.obeyed,
    row.traffic,
    row.isProved ? 1n : 0n,
  ];
}

export function valuesOfRenewal(renewal: NodeRenewal): (string | bigint | null)[] {
  const { node, count, ...said } = renewal;
  return valuesOfNode({ ...node, ...said, renewals: count });
}

/**
 * SQL: the columns of an existing row (`table`) after a renewal.
 *
 * INVARIANT: the row never says that a server obeyed more than it had obeyed when some renewal was sent. Within one
 * history, a renewal that is carried out after a later one lowers nothing. A renewal of another history says nothing of
 * this one.
 */
export function renewedColumns(table: string, greatest: string): string {
  return `instance = excluded.instance, address = excluded.address, version = excluded.version,
    zone = excluded.zone, started_at_ms = excluded.started_at_ms, max_offline_ms = excluded.max_offline_ms,
    renewals = ${greatest}(${table}.renewals + 1, excluded.renewals), incarnation = excluded.incarnation,
    obeyed = CASE WHEN ${table}.incarnation = excluded.incarnation
      THEN ${greatest}(${table}.obeyed, excluded.obeyed) ELSE excluded.obeyed END,
    traffic = excluded.traffic, proved = excluded.proved`;
}
