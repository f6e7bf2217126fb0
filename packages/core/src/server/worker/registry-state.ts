import { IdmintError, invalidField } from "../../errors.ts";
import type { SnowflakeKind } from "../../kinds/snowflake.ts";
import type { SnowflakeLayout } from "../../snowflake/layout.ts";
import { DEFAULT_RESERVE_AHEAD_MS, MAX_LEAD_MS, WORKER_TTL_MS } from "../../worker/limits.ts";
import type {
  RenewedWorkerLease,
  WorkerLease,
  WorkerLeaseKey,
  WorkerLeaseRequest,
  WorkerRenewal,
} from "../../worker/ports.ts";
import type { Worker } from "../store/worker-registry.ts";

/**
 * How many free rows a registry compares. With millions of worker ids that were all leased once, a lease must not read
 * all of them.
 */
export const FREE_CANDIDATES = 1_000;

// What a registry of worker ids decides, the same for every store. Each function runs on rows that are locked until the
// decision is written, in one transaction.

/** The data center a lease is for; INVALID_ARGUMENT when the layout has no bits for it. */
export function dataCenterOf(kind: SnowflakeKind, dataCenter: number | undefined): number {
  const asked = dataCenter ?? kind.dataCenter;
  const count = 2 ** kind.layout.dataCenterBits;
  if (Number.isInteger(asked) && asked >= 0 && asked < count) return asked;
  throw invalidField(
    "data_center",
    `must be 0 to ${count - 1}, the range of the layout's data_center_bits, got ${asked}`,
    "VALUE_OUT_OF_RANGE",
  );
}

/** What a registry looks up, in the data center of a lease, to decide which worker id it is for. */
export interface LeaseCandidates {
  /** The row of the same instance. At most one row has it. */
  readonly own: Worker | undefined;
  /** How many worker ids have a row. They are 0 … used − 1, since worker ids are taken in order and rows stay. */
  readonly used: number;
  /** The row with the lowest `expiresAtMs` among the first FREE_CANDIDATES rows, by worker id, that `isFree`. */
  readonly free: Worker | undefined;
}

/** Whether another instance may have this worker id: its lease has ended, and so has the time it reserved. */
export function isFree(row: Worker, nowMs: number): boolean {
  return row.expiresAtMs <= nowMs && row.reservedUntilMs <= nowMs;
}

/** What a tag says about its workers. */
export interface WorkerRules {
  readonly layout: SnowflakeLayout;
  /** The tag's floor as a time: its last millisecond. No lease reserves it or anything before it. */
  readonly closedUntilMs: number;
}

/** The rules of a tag, for the workers of one data center. */
export interface DataCenterRules extends WorkerRules {
  readonly dataCenter: number;
}

/**
 * The furthest time that may be reserved. Where the floor is ahead of the clock, it counts from the floor, since no
 * lease may begin below the floor. After an accept the floor lies minutes ahead, and ids are to be made all the same. A
 * holder that reserves a long time ahead gets no more above such a floor than others. In Redis, what it gets there
 * moves the floor itself, so each loss of Redis would put all ids ahead by as much again.
 */
function furthest({ closedUntilMs }: WorkerRules, reserveAheadMs: number, nowMs: number): number {
  const aboveFloor = closedUntilMs + Math.min(reserveAheadMs, DEFAULT_RESERVE_AHEAD_MS);
  return Math.max(nowMs + reserveAheadMs, aboveFloor) + MAX_LEAD_MS;
}

/** A row as it shall be written, and what is answered once it is. */
export interface LeasedWorker {
  readonly row: Worker;
  readonly answer: Omit<WorkerLease, "epoch">;
}

/**
 * Decides about a lease.
 *
 * INVARIANTS
 * - The lease starts above the floor, and above everything that was ever reserved for the worker id and its extension,
 *   whoever it was reserved for and whatever any clock says. Its token is new, so an earlier holder of the worker id
 *   reserves nothing more.
 * - Worker ids are those of the layout. When all are taken, none is invented and none is used twice.
 */
export function leasedWorker(
  candidates: LeaseCandidates,
  request: WorkerLeaseRequest,
  rules: DataCenterRules,
  nowMs: number,
): LeasedWorker {
  const old = candidates.own ?? unusedWorker(candidates.used, rules) ?? candidates.free;
  if (old === undefined) throw workerIdsExhausted(request.tag, rules);
  const before = Math.max(old.reservedUntilMs, rules.closedUntilMs);
  const wanted = Math.max(nowMs, before) + request.reserveAheadMs;
  const row: Worker = {
    ...old,
    instance: request.instance,
    token: old.token + 1n,
    reservedUntilMs: Math.max(
      before,
      Math.min(wanted, furthest(rules, request.reserveAheadMs, nowMs)),
    ),
    expiresAtMs: nowMs + WORKER_TTL_MS,
  };
  const notBeforeMs = before + 1;
  const { dataCenter, workerId } = row;
  return { row, answer: { ...renewalAnswer(row, nowMs), dataCenter, workerId, notBeforeMs } };
}

function unusedWorker(used: number, { layout, dataCenter }: DataCenterRules): Worker | undefined {
  if (used >= 2 ** layout.workerBits) return undefined;
  return {
    dataCenter,
    workerId: used,
    instance: "",
    token: 0n,
    extension: 0,
    reservedUntilMs: layout.timeOriginMs - 1,
    expiresAtMs: 0,
  };
}

/** A row as it shall be written, and what is answered once it is. */
export interface RenewedWorker {
  readonly row: Worker;
  readonly answer: Omit<RenewedWorkerLease, "epoch">;
}

/**
 * Decides about a renewal. The row is that of its worker id, or undefined when there is none.
 *
 * INVARIANTS
 * - Only who presents the row's token reserves anything, and gets another token for it.
 * - A reservation never falls, even if the registry's clock went back. With the next extension, of which nothing was
 *   ever reserved, it begins anew.
 * - Nothing is reserved further ahead than `furthest`. Whoever asks for more has a wrong clock, or the registry has.
 *   Ids of a time to come would block their worker id once the clock is right again. The holder keeps its lease and
 *   gets what is allowed, and the answer shows how much that is. An extension is not begun by a clock so far ahead.
 */
export function renewedWorker(
  row: Worker | undefined,
  renewal: WorkerRenewal,
  rules: WorkerRules,
  nowMs: number,
): RenewedWorker {
  const held = heldRow(row, renewal);
  const { extension, reserveUntilMs, reserveAheadMs } = renewal;
  const isNext = extension === held.extension + 1 && extension < 2 ** rules.layout.extensionBits;
  if (extension !== held.extension && !isNext) {
    throw invalidField(
      "extension",
      `must be ${held.extension}, or one more if the layout has bits for it, got ${extension}`,
    );
  }
  let reserved: Pick<Worker, "extension" | "reservedUntilMs"> = held;
  const limit = furthest(rules, reserveAheadMs, nowMs);
  if (!isNext) {
    const allowed = Math.min(reserveUntilMs, limit);
    reserved = { extension, reservedUntilMs: Math.max(held.reservedUntilMs, allowed) };
  } else if (reserveUntilMs <= limit) {
    reserved = { extension, reservedUntilMs: reserveUntilMs };
  }
  const next: Worker = {
    ...held,
    extension: reserved.extension,
    reservedUntilMs: reserved.reservedUntilMs,
    token: held.token + 1n,
    expiresAtMs: nowMs + WORKER_TTL_MS,
  };
  return { row: next, answer: renewalAnswer(next, nowMs) };
}

/** Decides about the end of a lease. INVARIANT: the reservation stays, and the token is used up. */
export function releasedWorker(
  row: Worker | undefined,
  key: WorkerLeaseKey,
  nowMs: number,
): Worker {
  const held = heldRow(row, key);
  return { ...held, token: held.token + 1n, expiresAtMs: Math.min(held.expiresAtMs, nowMs) };
}

function heldRow(row: Worker | undefined, key: WorkerLeaseKey): Worker {
  if (row?.token === key.token) return row;
  throw workerLeaseLost(key);
}

function renewalAnswer(row: Worker, nowMs: number): Omit<RenewedWorkerLease, "epoch"> {
  const { token, extension, reservedUntilMs } = row;
  return { token, ttlMs: WORKER_TTL_MS, extension, reservedUntilMs, nowMs };
}

function workerIdsExhausted(tag: string, { layout, dataCenter }: DataCenterRules): IdmintError {
  const count = 2 ** layout.workerBits;
  const text = `all ${count} worker ids of tag "${tag}" in data center ${dataCenter} are leased; a worker id becomes free ${WORKER_TTL_MS / 1_000} s after its holder's last renewal`;
  const metadata = { tag, data_center: String(dataCenter) };
  return new IdmintError("WORKER_IDS_EXHAUSTED", text, { metadata });
}

function workerLeaseLost(key: WorkerLeaseKey): IdmintError {
  const text = `worker id ${key.workerId} of tag "${key.tag}" in data center ${key.dataCenter} belongs to another holder now, or this token was used before; lease a worker id again`;
  const metadata = {
    tag: key.tag,
    data_center: String(key.dataCenter),
    worker_id: String(key.workerId),
  };
  return new IdmintError("WORKER_LEASE_LOST", text, { metadata });
}
