import type { RenewedWorkerLease, WorkerLease, WorkerRenewal } from "../../worker/ports.ts";
import type { KeptCallers } from "../access/known-state.ts";
import type { GrantFile } from "../claims/kept-grants-state.ts";
import type { SeenIssuing } from "../node/issuing-state.ts";
import type { Tag } from "../tag/tag.ts";
import { MAX_LEAD_MS, MAX_RESERVE_AHEAD_MS } from "../../worker/limits.ts";

// The time of a kept lease is reserved in two steps. The registry reserves a minute ahead, and a file of the holder
// says how much of that minute may have been used. So a holder that is restarted goes on within its minute while the
// registry is down.

/**
 * A lease as its holder keeps it on its own disk.
 *
 * INVARIANTS
 * 1. Ids are made only of times up to `usedUntilMs` as the file has it. Whoever takes the lease out of the file makes
 *    ids only of later times. So no two runs of the holder make ids of the same millisecond.
 * 2. usedUntilMs ≤ reservedUntilMs, which the registry reserved for this lease and for no other, whatever became of the
 *    lease since.
 */
export interface KeptLease {
  readonly tag: string;
  readonly instance: string;
  readonly dataCenter: number;
  readonly workerId: number;
  readonly extension: number;
  /** The tag's epoch. */
  readonly epoch: bigint;
  /** The token of the registry's last answer. */
  readonly token: bigint;
  readonly ttlMs: number;
  /** Last millisecond that the registry reserved. */
  readonly reservedUntilMs: number;
  /** Last millisecond that ids may have been made of. */
  readonly usedUntilMs: number;
  /** The registry's clock in its last answer, and when that came, on the holder's monotonic clock. */
  readonly registryMs: number;
  readonly at: number;
  /**
   * How far ahead of the registry's clock the lease began, in milliseconds. It begins above what was reserved before
   * it.
   */
  readonly leadMs: number;
}

/** What a server keeps on its own disk, so that it can start while its store or its registry is down. */
export interface KeptContents {
  /** The highest time of the server's clock that was reported, milliseconds since 1970. */
  readonly reportedMs: number;
  /** The store's history (StoreChanges); undefined when it is not known yet. */
  readonly incarnation: string | undefined;
  readonly leases: readonly KeptLease[];
  /** The tags of the leases. */
  readonly tags: readonly Tag[];
  /** The server's row in the store, and until when it may issue; undefined when it has none yet. */
  readonly node: KeptNode | undefined;
  /** Whether an operator had stopped the servers, by database. */
  readonly issuing: readonly SeenIssuing[];
  /** Who callers are, by the store; undefined when it never said. */
  readonly callers: KeptCallers | undefined;
}

/** The row that the next run of this server goes on with. */
export interface KeptNode {
  readonly id: string;
  /** For each database of the store, on the holder's monotonic clock. */
  readonly parts: readonly (readonly [part: string, issueUntil: number])[];
}

/** The file that this is kept in. One process at a time has it open. */
export interface LeaseFile {
  /** The file beside it, under the same lock. Absent: none is kept. */
  readonly grants?: GrantFile;
  /** What an earlier run of this server left; undefined when nothing of it may be used. */
  readonly found: KeptContents | undefined;
  /** Fulfils when the contents are durable. The file has them whole, or not at all. */
  write(contents: KeptContents): Promise<void>;
  /** Fulfils when nothing that is in the file would be believed. Needs no room on the disk. */
  empty(): Promise<void>;
}

/** How far ahead of use the registry reserves for a server that keeps its leases. */
export const KEPT_RESERVE_AHEAD_MS: number = MAX_RESERVE_AHEAD_MS;

/** A lease that the registry has just answered. Nothing of it is used yet. */
export function keptLease(
  request: { readonly tag: string; readonly instance: string },
  lease: WorkerLease,
  now: number,
): KeptLease {
  const { tag, instance } = request;
  const { dataCenter, workerId, extension, epoch, token, ttlMs, reservedUntilMs } = lease;
  const { notBeforeMs, nowMs: registryMs } = lease;
  const usedUntilMs = notBeforeMs - 1;
  const which = { tag, instance, dataCenter, workerId, extension, epoch, token, ttlMs };
  // An answer that reserves nothing names a reservation that ends before it begins.
  return {
    ...which,
    reservedUntilMs: Math.max(reservedUntilMs, usedUntilMs),
    usedUntilMs,
    registryMs,
    at: now,
    leadMs: 0,
  };
}

/**
 * The first stretch of time of a lease that the holder has just got, or found in its file. It lies above all that may
 * have been used. The answered lease must be in the file before that time is used.
 */
export function takenUp(
  kept: KeptLease,
  reserveAheadMs: number,
  now: number,
): { readonly kept: KeptLease; readonly lease: WorkerLease } {
  const notBeforeMs = kept.usedUntilMs + 1;
  const leadMs = Math.max(0, kept.usedUntilMs - registryTime(kept, now));
  const from = registryTime(kept, now) + leadMs;
  const next = used({ ...kept, leadMs }, Math.floor(from + reserveAheadMs));
  const { dataCenter, workerId } = next;
  return { kept: next, lease: { ...answerOf(next, now), dataCenter, workerId, notBeforeMs } };
}

/**
 * More time of the same extension, as a registry would reserve it. It is not further ahead of the registry's clock than
 * is allowed, except by what the lease was ahead from its beginning, and it is never beyond what the registry reserved.
 * It must be in the file before it is used.
 */
export function raised(kept: KeptLease, renewal: WorkerRenewal, now: number): KeptLease {
  const { reserveUntilMs, reserveAheadMs } = renewal;
  const furthest = registryTime(kept, now) + kept.leadMs + reserveAheadMs + MAX_LEAD_MS;
  return used(kept, Math.min(reserveUntilMs, Math.floor(furthest)));
}

/** What to ask the registry for when the holder asks for `renewal`: the same, further ahead. */
export function renewalAhead({ token }: KeptLease, renewal: WorkerRenewal): WorkerRenewal {
  const timeMs = renewal.reserveUntilMs - renewal.reserveAheadMs;
  return {
    ...renewal,
    token,
    reserveAheadMs: KEPT_RESERVE_AHEAD_MS,
    reserveUntilMs: timeMs + KEPT_RESERVE_AHEAD_MS,
  };
}

/** Takes the registry's renewal. Of a next extension, what the holder asked for is used at once. */
export function renewedAhead(
  kept: KeptLease,
  renewal: WorkerRenewal,
  answer: RenewedWorkerLease,
  now: number,
): KeptLease {
  const { token, ttlMs, extension, reservedUntilMs, epoch, nowMs: registryMs } = answer;
  const next = { ...kept, token, ttlMs, epoch, registryMs, at: now };
  if (extension === kept.extension) {
    return { ...next, reservedUntilMs: Math.max(kept.reservedUntilMs, reservedUntilMs) };
  }
  const usedUntilMs = Math.min(renewal.reserveUntilMs, reservedUntilMs);
  return { ...next, extension, reservedUntilMs, usedUntilMs, leadMs: 0 };
}

/** The answer to the holder, once the lease is in its file. */
export function answerOf(kept: KeptLease, now: number): RenewedWorkerLease {
  const { token, ttlMs, extension, usedUntilMs, epoch } = kept;
  const nowMs = Math.floor(registryTime(kept, now));
  return { token, ttlMs, extension, reservedUntilMs: usedUntilMs, nowMs, epoch };
}

/** Whether some of what is reserved lies ahead of the registry's clock, and may still be used. */
export function hasTimeLeft(kept: KeptLease, now: number): boolean {
  return kept.reservedUntilMs > Math.max(kept.usedUntilMs, registryTime(kept, now));
}

/** The registry's clock now, as far as its last answer shows it. */
function registryTime({ registryMs, at }: KeptLease, now: number): number {
  return registryMs + Math.max(0, now - at);
}

/** The lease, used until a time: at most what is reserved (invariant 2), and never less than before. */
function used(kept: KeptLease, untilMs: number): KeptLease {
  const usedUntilMs = Math.max(kept.usedUntilMs, Math.min(untilMs, kept.reservedUntilMs));
  return { ...kept, usedUntilMs };
}
