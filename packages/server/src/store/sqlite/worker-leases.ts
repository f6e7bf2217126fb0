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
  storeWentBack,
  type Worker,
  type WorkerRegistry,
} from "@idmint/core/server";
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
import type { Transaction } from "./file/connection.ts";
import type { Database } from "./file/database.ts";
import { readTag } from "./tags.ts";

const READ = `SELECT ${WORKER_COLUMNS} FROM worker WHERE tag = ? AND data_center = ? AND worker_id = ?`;
const READ_OWN = `SELECT ${WORKER_COLUMNS} FROM worker WHERE tag = ? AND data_center = ? AND instance = ?`;
const READ_FREE = `SELECT * FROM (
  SELECT ${WORKER_COLUMNS} FROM worker
  WHERE tag = ?1 AND data_center = ?2 AND expires_at_ms <= ?3 AND reserved_until_ms <= ?3
  ORDER BY worker_id LIMIT ${FREE_CANDIDATES}
) ORDER BY expires_at_ms, worker_id LIMIT 1`;
// Worker ids are taken in order and rows stay, so the highest says how many there are.
const COUNT =
  "SELECT coalesce(max(worker_id) + 1, 0) AS used FROM worker WHERE tag = ? AND data_center = ?";
const WRITE = `INSERT INTO worker (tag, ${WORKER_COLUMNS}, version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)
  ON CONFLICT (tag, data_center, worker_id) DO UPDATE SET instance = excluded.instance,
    token = excluded.token, extension = excluded.extension,
    reserved_until_ms = excluded.reserved_until_ms, expires_at_ms = excluded.expires_at_ms,
    version = version + 1`;
const BEGIN_TAG = "UPDATE tag SET version = 1 WHERE name = ? AND version = 0";
const PROGRESS = "UPDATE store SET progress = progress + ?";
const LIST = `SELECT ${WORKER_COLUMNS} FROM worker
  WHERE tag = ? AND (data_center, worker_id) > (?, ?) ORDER BY data_center, worker_id LIMIT ?`;

/**
 * INVARIANT, of all functions here: rows are read, judged and written under one write lock, and what is answered is on
 * disk. Each written row counts in the store's progress, by which an older copy of the file is told.
 */
export function leaseWorker(
  database: Database,
  deadlineMs: number,
  request: WorkerLeaseRequest,
): WorkerLease {
  return inPool(database, request.tag, deadlineMs, (transaction, pool) => {
    const { tag, instance } = request;
    const dataCenter = dataCenterOf(pool.kind, request.dataCenter);
    const nowMs = database.now();
    const own = readRow(transaction, READ_OWN, tag, dataCenter, instance);
    const used = Number(transaction.get(COUNT, tag, dataCenter)?.["used"] ?? 0);
    const isFull = own === undefined && used >= 2 ** pool.kind.layout.workerBits;
    const free = isFull ? readRow(transaction, READ_FREE, tag, dataCenter, nowMs) : undefined;
    const candidates = { own, used, free };
    const { row, answer } = leaseOf(pool, dataCenter, request, candidates, nowMs);
    // Ids of the layout may be made from now on: it is immutable.
    const changes = transaction.run(BEGIN_TAG, tag);
    writeRow(transaction, tag, row, changes);
    return { ...answer, epoch: pool.epoch };
  });
}

export function renewWorker(
  database: Database,
  deadlineMs: number,
  renewal: WorkerRenewal,
): RenewedWorkerLease {
  const { tag, dataCenter, workerId } = renewal;
  return inPool(database, tag, deadlineMs, (transaction, pool) => {
    const held = readRow(transaction, READ, tag, dataCenter, workerId);
    const { row, answer } = renewalOf(pool, held, renewal, database.now());
    writeRow(transaction, tag, row);
    return { ...answer, epoch: pool.epoch };
  });
}

export function releaseWorker(database: Database, deadlineMs: number, key: WorkerLeaseKey): void {
  const { tag, dataCenter, workerId } = key;
  inPool(database, tag, deadlineMs, (transaction, pool) => {
    const held = readRow(transaction, READ, tag, dataCenter, workerId);
    writeRow(transaction, tag, releaseOf(pool, held, key, database.now()));
  });
}

export function listWorkers(
  database: Database,
  deadlineMs: number,
  { tag, after, limit }: Parameters<WorkerRegistry["listWorkers"]>[0],
): readonly Worker[] {
  return database.read(deadlineMs, (transaction, fenced) => {
    if (fenced !== "") throw storeWentBack(fenced);
    const from = [after?.dataCenter ?? -1, after?.workerId ?? -1] as const;
    return transaction.all(LIST, tag, ...from, limit).map(fromRow);
  });
}

function inPool<T>(
  database: Database,
  tag: string,
  deadlineMs: number,
  work: (transaction: Transaction, pool: WorkerPool) => T,
): T {
  return database.write(deadlineMs, (transaction) =>
    work(transaction, poolOf(tag, readTag(transaction, tag))),
  );
}

function readRow(
  transaction: Transaction,
  sql: string,
  ...values: (string | number)[]
): Worker | undefined {
  const row = transaction.get(sql, ...values);
  return row === undefined ? undefined : fromRow(row);
}

function fromRow(row: Record<string, unknown>): Worker {
  return workerFromRow(row as unknown as WorkerRow);
}

/** `changes` of the tag's row in the same transaction count too. */
function writeRow(transaction: Transaction, tag: string, row: Worker, changes = 0): void {
  transaction.run(WRITE, tag, ...valuesOfWorker(row));
  transaction.run(PROGRESS, changes + 1);
}
