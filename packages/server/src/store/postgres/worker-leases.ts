import type {
  RenewedWorkerLease,
  WorkerLease,
  WorkerLeaseKey,
  WorkerLeaseRequest,
  WorkerRenewal,
} from "@idmint/core";
import {
  dataCenterOf,
  FREE_CANDIDATES,
  storeUnavailable,
  storeIsAnother,
  storeWentBack,
  type Worker,
  type WorkerRegistry,
} from "@idmint/core/server";
import { TagMovedError } from "../shared/placed-tag.ts";
import { TAG_COLUMNS, tagFromRow, type TagRow } from "../shared/tag-row.ts";
import {
  leaseOf,
  poolOf,
  releaseOf,
  renewalOf,
  valuesOfWorker,
  WORKER_COLUMNS,
  workerFromRow,
  type WorkerPool,
  type WorkerRow,
} from "../shared/worker-pool.ts";
import type { Connections, Session } from "./connections.ts";
import { refuseUnsafeSettings } from "./grant.ts";
import { proof, TAG_IS_OURS } from "./identity.ts";
import { hasTag } from "./tags.ts";

const T_COLUMNS = TAG_COLUMNS.map((column) => `t.${column}`).join(", ");
const W_COLUMNS = WORKER_COLUMNS.split(", ")
  .map((column) => `w.${column}`)
  .join(", ");
const NOW_MS = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms";
const IS_OURS = "w.xmin = w.written_by AS is_ours";

/** A tag's row with the proof of the store: its name, allowed unsafe settings. */
function readTag(lock: "FOR UPDATE" | ""): string {
  return `WITH ${proof("$2::text[]")}, its AS MATERIALIZED (
  SELECT ${T_COLUMNS}, t.moved_to IS NOT NULL OR t.moving AS is_elsewhere, ${TAG_IS_OURS} AS is_ours
  FROM idmint.tag AS t WHERE t.name = $1 ${lock}
)
SELECT p.fenced, p.unsafe, t.* FROM proof AS p LEFT JOIN its AS t ON true`;
}

const READ_TAG = { name: "idmint-worker-tag-1", text: readTag("") };
const LOCK_TAG = { name: "idmint-worker-pool-1", text: readTag("FOR UPDATE") };
const BEGIN_TAG = {
  name: "idmint-worker-begin-1",
  text: `UPDATE idmint.tag SET version = 1, written_by = pg_current_xact_id()::xid
  WHERE name = $1 AND version = 0`,
};
const LOCK = {
  name: "idmint-worker-lock-1",
  text: `SELECT ${W_COLUMNS}, ${IS_OURS}, ${NOW_MS} FROM idmint.worker AS w
  WHERE w.tag = $1 AND w.data_center = $2 AND w.worker_id = $3 FOR UPDATE`,
};
const LOCK_OWN = {
  name: "idmint-worker-own-1",
  text: `SELECT ${W_COLUMNS}, ${IS_OURS}, ${NOW_MS} FROM idmint.worker AS w
  WHERE w.tag = $1 AND w.data_center = $2 AND w.instance = $3 FOR UPDATE`,
};
// Worker ids are taken in order and rows stay, so the highest says how many there are.
const COUNT = {
  name: "idmint-worker-count-1",
  text: `SELECT coalesce(max(w.worker_id) + 1, 0) AS used, ${NOW_MS} FROM idmint.worker AS w
  WHERE w.tag = $1 AND w.data_center = $2`,
};
// One that is locked is being renewed or released at this moment: it is not the one whose lease ended longest ago.
const LOCK_FREE = {
  name: "idmint-worker-free-2",
  text: `SELECT ${W_COLUMNS}, ${IS_OURS} FROM idmint.worker AS w
  WHERE w.tag = $1 AND w.data_center = $2 AND w.expires_at_ms <= $3 AND w.reserved_until_ms <= $3
    AND w.worker_id IN (
      SELECT f.worker_id FROM idmint.worker AS f
      WHERE f.tag = $1 AND f.data_center = $2 AND f.expires_at_ms <= $3 AND f.reserved_until_ms <= $3
      ORDER BY f.worker_id LIMIT ${FREE_CANDIDATES}
    )
  ORDER BY w.expires_at_ms, w.worker_id LIMIT 1 FOR UPDATE SKIP LOCKED`,
};
const WRITE = {
  name: "idmint-worker-write-1",
  text: `INSERT INTO idmint.worker (tag, ${WORKER_COLUMNS}, written_by)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, pg_current_xact_id()::xid)
  ON CONFLICT (tag, data_center, worker_id) DO UPDATE SET instance = excluded.instance,
    token = excluded.token, extension = excluded.extension,
    reserved_until_ms = excluded.reserved_until_ms, expires_at_ms = excluded.expires_at_ms,
    written_by = excluded.written_by`,
};
const LIST = {
  name: "idmint-worker-list-1",
  text: `WITH ${proof("'{}'::text[]")}, page AS (
  SELECT ${W_COLUMNS} FROM idmint.worker AS w
  WHERE w.tag = $1 AND (w.data_center, w.worker_id) > ($2, $3)
  ORDER BY w.data_center, w.worker_id LIMIT $4
)
SELECT p.fenced, w.* FROM proof AS p LEFT JOIN page AS w ON true ORDER BY w.data_center, w.worker_id`,
};

type ProvenTag = {
  readonly fenced: string;
  readonly unsafe: string;
  readonly is_ours: boolean;
  readonly is_elsewhere: boolean;
} & {
  readonly [Column in keyof TagRow]: TagRow[Column] | null;
};
interface LockedRow extends WorkerRow {
  readonly is_ours: boolean;
}
type TimedRow = LockedRow & { readonly now_ms: string };

/**
 * INVARIANTS, of all functions here
 * - A lease locks the tag's row before it chooses, so no two leases of a tag choose at a time; it and renewals lock the
 *   worker's row before they judge it, and judge its newest version. So rows are read, judged and written one after the
 *   other, and what is answered is committed.
 * - The store's identity is compared in the same transaction, and rows that something else wrote are refused.
 * - Leases of a tag are in the one database where the tag is. No tag of kind snowflake moves to another one, nor does one
 *   that is made over its tombstone, since that is of kind snowflake too.
 * - A renewal reads the tag's row without a lock. It may see the tag as it was a moment before an operator changed it; what
 *   it reserves then is what it would have reserved that moment before.
 */
export async function leaseWorker(
  connections: Connections,
  request: WorkerLeaseRequest,
): Promise<WorkerLease> {
  const { tag, instance } = request;
  return inPool(connections, LOCK_TAG, tag, async (session, pool) => {
    const dataCenter = dataCenterOf(pool.kind, request.dataCenter);
    const values = [tag, dataCenter];
    const [own] = await session.query<TimedRow>({ ...LOCK_OWN, values: [...values, instance] });
    const [count] = await session.query<{ used: number; now_ms: string }>({ ...COUNT, values });
    if (count === undefined) throw storeUnavailable("PostgreSQL did not count");
    const { used, now_ms } = count;
    const isFull = own === undefined && used >= 2 ** pool.kind.layout.workerBits;
    const [free] = isFull
      ? await session.query<LockedRow>({ ...LOCK_FREE, values: [...values, now_ms] })
      : [];
    const candidates = { own: workerOf(tag, own), used, free: workerOf(tag, free) };
    const { row, answer } = leaseOf(pool, dataCenter, request, candidates, Number(now_ms));
    // Ids of the layout may be made from now on: it is immutable.
    await session.query({ ...BEGIN_TAG, values: [tag] });
    await write(session, tag, row);
    return { ...answer, epoch: pool.epoch };
  });
}

export async function renewWorker(
  connections: Connections,
  renewal: WorkerRenewal,
): Promise<RenewedWorkerLease> {
  const { tag } = renewal;
  return inPool(connections, READ_TAG, tag, async (session, pool) => {
    const [held] = await lock(session, renewal);
    const nowMs = Number(held?.now_ms ?? 0);
    const { row, answer } = renewalOf(pool, workerOf(tag, held), renewal, nowMs);
    await write(session, tag, row);
    return { ...answer, epoch: pool.epoch };
  });
}

export async function releaseWorker(connections: Connections, key: WorkerLeaseKey): Promise<void> {
  const { tag } = key;
  await inPool(connections, READ_TAG, tag, async (session, pool) => {
    const [held] = await lock(session, key);
    const nowMs = Number(held?.now_ms ?? 0);
    await write(session, tag, releaseOf(pool, workerOf(tag, held), key, nowMs));
  });
}

export async function listWorkers(
  connections: Connections,
  { tag, after, limit }: Parameters<WorkerRegistry["listWorkers"]>[0],
): Promise<readonly Worker[]> {
  const values = [tag, after?.dataCenter ?? -1, after?.workerId ?? -1, limit];
  const rows = await connections.run((session) =>
    session.query<{ fenced: string } & { [Column in keyof WorkerRow]: WorkerRow[Column] | null }>({
      ...LIST,
      values,
    }),
  );
  const [first] = rows;
  if (first === undefined) throw storeWentBack("the store has lost its identity");
  if (first.fenced !== "") throw storeIsAnother(first.fenced);
  return rows.flatMap((row) => (row.instance === null ? [] : [workerFromRow(row as WorkerRow)]));
}

async function inPool<T>(
  connections: Connections,
  statement: { readonly name: string; readonly text: string },
  tag: string,
  work: (session: Session, pool: WorkerPool) => Promise<T>,
): Promise<T> {
  return connections.run((session) =>
    session.transaction(async () => {
      const values = [tag, connections.allowUnsafe];
      const [row] = await session.query<ProvenTag>({ ...statement, values });
      if (row === undefined) throw storeWentBack("the store has lost its identity");
      if (row.fenced !== "") throw storeIsAnother(row.fenced);
      if (row.unsafe !== "") refuseUnsafeSettings(row.unsafe);
      if (!hasTag(row)) return work(session, poolOf(tag, undefined));
      if (!row.is_ours) throw changedByHand(tag);
      if (row.is_elsewhere) throw new TagMovedError(tag);
      return work(session, poolOf(tag, tagFromRow(row)));
    }),
  );
}

async function lock(session: Session, key: WorkerLeaseKey): Promise<readonly TimedRow[]> {
  const values = [key.tag, key.dataCenter, key.workerId];
  return session.query<TimedRow>({ ...LOCK, values });
}

async function write(session: Session, tag: string, row: Worker): Promise<void> {
  await session.query({ ...WRITE, values: [tag, ...valuesOfWorker(row).map(String)] });
}

function workerOf(tag: string, row: LockedRow | undefined): Worker | undefined {
  if (row === undefined) return undefined;
  if (!row.is_ours) throw changedByHand(tag);
  return workerFromRow(row);
}

function changedByHand(tag: string): Error {
  return storeWentBack(
    `tag "${tag}" or a worker of it was loaded from a dump, changed by hand, or rewritten by an ALTER TABLE`,
  );
}
