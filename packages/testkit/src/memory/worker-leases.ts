// Worker leases of the store in memory, with the decisions of core.
import {
  decode,
  IdmintError,
  type RenewedWorkerLease,
  tickAt,
  timeOf,
  type WorkerLease,
  type WorkerLeaseKey,
  type WorkerLeaseRequest,
  type WorkerRenewal,
} from "@idmint/core";
import type { SnowflakeKind } from "@idmint/core/kinds";
import {
  dataCenterOf,
  isFree,
  leasedWorker,
  releasedWorker,
  renewedWorker,
  type Tag,
  type Worker,
  type WorkerRegistry,
} from "@idmint/core/server";
import type { MemoryDatabase } from "./database.ts";
import { assertAccepted } from "./rows.ts";

const TOKENS_OF_EPOCH = 2n ** 31n;
/** Furthest that a lost history may have reserved by its own clock, ahead of this one's. */
const MAX_LOST_LEAD_MS = 370_000;
/** The same above a floor that is ahead of any clock. */
const MAX_LEAD_OF_FLOOR_MS = 13_000;

export function leaseWorker(database: MemoryDatabase, request: WorkerLeaseRequest): WorkerLease {
  const { tag, instance } = request;
  const { row, kind, closedUntilMs } = poolOf(database, tag);
  if ((request.epoch ?? row.epoch) !== row.epoch) {
    throw new IdmintError("SEGMENT_NOT_READY", `tag "${tag}" is in epoch ${row.epoch}`);
  }
  const dataCenter = dataCenterOf(kind, request.dataCenter);
  const nowMs = database.now();
  const rows = workersOf(database, tag).filter((worker) => worker.dataCenter === dataCenter);
  const [free] = rows
    .filter((worker) => isFree(worker, nowMs))
    .toSorted((a, b) => a.expiresAtMs - b.expiresAtMs || a.workerId - b.workerId);
  const own = rows.find((worker) => worker.instance === instance);
  const decided = leasedWorker(
    { own, used: rows.length, free },
    request,
    { layout: kind.layout, dataCenter, closedUntilMs },
    nowMs,
  );
  const first = row.epoch * TOKENS_OF_EPOCH;
  const token = decided.row.token > first ? decided.row.token : first;
  const extension = row.floor > 0n ? 2 ** kind.layout.extensionBits - 1 : decided.row.extension;
  put(database, tag, { ...decided.row, token, extension });
  if (row.version === 0n) database.rows.set(tag, { ...row, version: 1n });
  return { ...decided.answer, token, extension, epoch: row.epoch };
}

export function renewWorker(database: MemoryDatabase, renewal: WorkerRenewal): RenewedWorkerLease {
  const { row, kind, closedUntilMs } = poolOf(database, renewal.tag);
  const held = heldOf(database, row, renewal);
  const rules = { layout: kind.layout, closedUntilMs };
  const decided = renewedWorker(held, renewal, rules, database.now());
  put(database, renewal.tag, decided.row);
  return { ...decided.answer, epoch: row.epoch };
}

export function releaseWorker(database: MemoryDatabase, key: WorkerLeaseKey): void {
  const { row } = poolOf(database, key.tag);
  put(database, key.tag, releasedWorker(heldOf(database, row, key), key, database.now()));
}

export function listWorkers(
  database: MemoryDatabase,
  { tag, after, limit }: Parameters<WorkerRegistry["listWorkers"]>[0],
): readonly Worker[] {
  assertAccepted(database);
  return workersOf(database, tag)
    .toSorted((a, b) => a.dataCenter - b.dataCenter || a.workerId - b.workerId)
    .filter(
      ({ dataCenter, workerId }) =>
        after === undefined ||
        dataCenter > after.dataCenter ||
        (dataCenter === after.dataCenter && workerId > after.workerId),
    )
    .slice(0, limit);
}

/** The floor of a snowflake tag after an accept: above all that a lost history may have reserved. */
export function acceptedFloor(
  { layout }: SnowflakeKind,
  row: Pick<Tag, "floor">,
  nowMs: number,
): bigint {
  const { timeBits, extensionBits, dataCenterBits, workerBits, sequenceBits } = layout;
  const low = BigInt(extensionBits + dataCenterBits + workerBits + sequenceBits);
  const byFloor =
    row.floor === 0n
      ? 0
      : timeOf(layout, decode(layout, row.floor).tick + 1) + MAX_LEAD_OF_FLOOR_MS;
  const lostMs = Math.max(nowMs + MAX_LOST_LEAD_MS, byFloor - 1);
  const tick = BigInt(Math.max(0, tickAt(layout, lostMs) + 1));
  const max = 2n ** (low + BigInt(timeBits)) - 1n;
  const floor = tick * 2n ** low - 1n;
  if (floor > max) return max;
  return floor > row.floor ? floor : row.floor;
}

interface Pool {
  readonly row: Tag;
  readonly kind: SnowflakeKind;
  readonly closedUntilMs: number;
}

function poolOf(database: MemoryDatabase, tag: string): Pool {
  assertAccepted(database);
  const metadata = { tag };
  const row = database.rows.get(tag);
  if (row === undefined || row.state === "DELETED") {
    throw new IdmintError("TAG_NOT_FOUND", `tag "${tag}" does not exist`, { metadata });
  }
  const { kind, floor } = row;
  if (kind.kind !== "snowflake" || kind.registry !== "STORE") {
    throw new IdmintError("WRONG_KIND", `tag "${tag}" has no workers here`, { metadata });
  }
  if (row.state === "PAUSED") {
    throw new IdmintError("TAG_PAUSED", `tag "${tag}" is paused`, { metadata });
  }
  const { layout } = kind;
  const first = floor === 0n ? 0 : decode(layout, floor).tick + 1;
  return { row, kind, closedUntilMs: timeOf(layout, first) - 1 };
}

function heldOf(database: MemoryDatabase, tag: Tag, key: WorkerLeaseKey): Worker | undefined {
  const isOfEpoch = key.token / TOKENS_OF_EPOCH === tag.epoch;
  return workersOf(database, key.tag).find(
    ({ dataCenter, workerId }) =>
      isOfEpoch && dataCenter === key.dataCenter && workerId === key.workerId,
  );
}

function workersOf(database: MemoryDatabase, tag: string): readonly Worker[] {
  return database.workers.get(tag) ?? [];
}

function put(database: MemoryDatabase, tag: string, row: Worker): void {
  const others = workersOf(database, tag).filter(
    ({ dataCenter, workerId }) => dataCenter !== row.dataCenter || workerId !== row.workerId,
  );
  database.workers.set(tag, [...others, row]);
}
