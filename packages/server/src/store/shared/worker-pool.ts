import {
  DEFAULT_RESERVE_AHEAD_MS,
  IdmintError,
  lastMsAtOrBelow,
  MAX_LEAD_MS,
  MAX_RESERVE_AHEAD_MS,
  maxIdOf,
  segmentNotReady,
  type SnowflakeLayout,
  tickAt,
  type WorkerLeaseKey,
  type WorkerLeaseRequest,
  type WorkerRenewal,
} from "@idmint/core";
import { comesFrom, type SnowflakeKind, type TagKind } from "@idmint/core/kinds";
import {
  type LeaseCandidates,
  type LeasedWorker,
  leasedWorker,
  releasedWorker,
  renewedWorker,
  type RenewedWorker,
  type Tag,
  tagNotFound,
  tagPaused,
  type Worker,
} from "@idmint/core/server";
import { CLOCK_MARGIN_MS } from "./period.ts";

/**
 * What the row of a tag in the store says of its workers.
 *
 * INVARIANTS, beside those of core's registry-state.ts
 * - No lease reserves a time of which an id is at or below the tag's floor. An operator who raises a floor, or accepts
 *   a store that went back, says that such ids may have been issued, under any worker id and extension. So leases above
 *   a floor have the last extension: a further one would begin anew, wherever a clock is.
 * - A token is valid in one epoch of its tag. An accept goes above all epochs of the history that was lost. So a holder
 *   whose lease only that history knew never presents the token of a present lease, though both were counted from the
 *   same row.
 */
export interface WorkerPool {
  readonly tag: string;
  readonly kind: SnowflakeKind;
  readonly epoch: bigint;
  /** The last millisecond that no lease reserves any more. It is before the layout's origin when there is none. */
  readonly closedUntilMs: number;
}

/** The pool of a tag's row. Throws what the row refuses: TAG_NOT_FOUND, WRONG_KIND, TAG_PAUSED. */
export function poolOf(name: string, tag: Tag | undefined): WorkerPool {
  if (tag === undefined || tag.state === "DELETED") throw tagNotFound(name, "snowflake");
  const { kind, state, epoch, floor } = tag;
  if (!comesFrom(kind, "lease") || kind.registry !== "STORE") throw withoutWorkers(name, kind);
  if (state === "PAUSED") throw tagPaused(name);
  return { tag: name, kind, epoch, closedUntilMs: lastMsAtOrBelow(kind.layout, floor) };
}

/**
 * Tokens of an epoch are above all tokens of lower epochs, as long as no worker id is renewed 2^31 times in one epoch.
 */
const TOKENS_OF_EPOCH = 2n ** 31n;

/** After this time a caller with an older record of the tag can have the present one. */
const RETRY_AFTER_MS = 100;

/** Decides about a lease on locked rows. Throws WORKER_IDS_EXHAUSTED when there is none. */
export function leaseOf(
  pool: WorkerPool,
  dataCenter: number,
  request: WorkerLeaseRequest,
  candidates: LeaseCandidates,
  nowMs: number,
): LeasedWorker {
  if (request.epoch !== undefined && request.epoch !== pool.epoch) {
    throw segmentNotReady(pool.tag, RETRY_AFTER_MS);
  }
  const { layout } = pool.kind;
  const rules = { layout, dataCenter, closedUntilMs: pool.closedUntilMs };
  const { row, answer } = leasedWorker(candidates, request, rules, nowMs);
  const first = pool.epoch * TOKENS_OF_EPOCH;
  const token = row.token > first ? row.token : first;
  const extension = hasFloor(pool) ? lastExtension(layout) : row.extension;
  return { row: { ...row, token, extension }, answer: { ...answer, token, extension } };
}

function hasFloor({ kind, closedUntilMs }: WorkerPool): boolean {
  return closedUntilMs >= kind.layout.timeOriginMs;
}

function lastExtension(layout: SnowflakeLayout): number {
  return 2 ** layout.extensionBits - 1;
}

/** Decides about a renewal on the locked row of its worker id. */
export function renewalOf(
  pool: WorkerPool,
  row: Worker | undefined,
  renewal: WorkerRenewal,
  nowMs: number,
): RenewedWorker {
  const rules = { layout: pool.kind.layout, closedUntilMs: pool.closedUntilMs };
  return renewedWorker(ofEpoch(pool, row, renewal), renewal, rules, nowMs);
}

/** Decides about the end of a lease on the locked row of its worker id. */
export function releaseOf(
  pool: WorkerPool,
  row: Worker | undefined,
  key: WorkerLeaseKey,
  nowMs: number,
): Worker {
  return releasedWorker(ofEpoch(pool, row, key), key, nowMs);
}

/** The row, unless the lease is of an older epoch and therefore lost. */
function ofEpoch(
  { epoch }: WorkerPool,
  row: Worker | undefined,
  { token }: WorkerLeaseKey,
): Worker | undefined {
  return token / TOKENS_OF_EPOCH === epoch ? row : undefined;
}

/**
 * The floor of a tag after its store went back and was accepted.
 *
 * INVARIANT: it is above all that any lease of the lost history may have reserved, by another host's clock. Where the floor is
 * ahead of the clock already, since the store was accepted minutes ago, leases reserved beyond that floor.
 */
export function acceptedFloor(kind: TagKind, floor: bigint, nowMs: number): bigint {
  if (!comesFrom(kind, "lease")) return floor;
  const { layout } = kind;
  const byClockMs = nowMs + MAX_RESERVE_AHEAD_MS + MAX_LEAD_MS + CLOCK_MARGIN_MS;
  const byFloorMs = lastMsAtOrBelow(layout, floor) + DEFAULT_RESERVE_AHEAD_MS + MAX_LEAD_MS;
  const untilMs = Math.max(byClockMs, byFloorMs);
  const tick = BigInt(Math.max(0, tickAt(layout, untilMs) + 1));
  const max = maxIdOf(layout);
  const least = (tick << BigInt(bitsBelowTime(layout))) - 1n;
  const atLeast = least < max ? least : max;
  return floor > atLeast ? floor : atLeast;
}

function bitsBelowTime(layout: SnowflakeLayout): number {
  return layout.extensionBits + layout.dataCenterBits + layout.workerBits + layout.sequenceBits;
}

function withoutWorkers(tag: string, kind: TagKind): IdmintError {
  const text = comesFrom(kind, "lease")
    ? `tag "${tag}" leases its worker ids only in Redis`
    : `tag "${tag}" is of kind ${kind.kind}; only tags of kind snowflake have worker ids`;
  return new IdmintError("WRONG_KIND", text, { metadata: { tag, kind: kind.kind } });
}

/** A row of the table `worker`. 64-bit integers come as bigint from SQLite and as decimal text from PostgreSQL. */
export interface WorkerRow {
  readonly data_center: bigint | number;
  readonly worker_id: bigint | number;
  readonly instance: string;
  readonly token: bigint | string;
  readonly extension: bigint | number;
  readonly reserved_until_ms: bigint | string;
  readonly expires_at_ms: bigint | string;
}

/** Its columns, as both backends have them. */
export const WORKER_COLUMNS =
  "data_center, worker_id, instance, token, extension, reserved_until_ms, expires_at_ms";

export function workerFromRow(row: WorkerRow): Worker {
  return {
    dataCenter: Number(row.data_center),
    workerId: Number(row.worker_id),
    instance: row.instance,
    token: BigInt(row.token),
    extension: Number(row.extension),
    reservedUntilMs: Number(row.reserved_until_ms),
    expiresAtMs: Number(row.expires_at_ms),
  };
}

/** The values of WORKER_COLUMNS. */
export function valuesOfWorker(row: Worker): (string | bigint)[] {
  return [
    BigInt(row.dataCenter),
    BigInt(row.workerId),
    row.instance,
    row.token,
    BigInt(row.extension),
    BigInt(row.reservedUntilMs),
    BigInt(row.expiresAtMs),
  ];
}
