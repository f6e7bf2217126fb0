import { invalidField } from "../../errors.ts";
import { MAX_ID } from "../../limits.ts";
import { instanceViolation, reserveAheadViolation } from "../../worker/limits.ts";
import type { WorkerLeaseRequest, WorkerRenewal } from "../../worker/ports.ts";
import { type Claims, MAX_CLAIMS } from "../claims/ports.ts";
import { type AuditEvent, MAX_AUDIT_BATCH, MAX_AUDIT_TEXT } from "../audit/ports.ts";
import { MAX_WEIGHT, type Traffic } from "../node/traffic-state.ts";
import type { GrantRequest } from "./grants.ts";
import { type LedgerRow, MAX_LEDGER_BATCH } from "./ledger.ts";
import type { MarkedGeneration, RaiseRequest, RedisMark } from "./redis-bounds.ts";

/** Most requests of one `grant` or `giveBack`. */
export const MAX_BATCH = 1_000;
/**
 * Generations of a tag whose marks are kept. Only a server that has not heard of newer generations asks for older ones.
 */
export const KEPT_GENERATIONS = 8;
/** Most names of one `getTags`, and most watched tags of one `changes`. */
const MAX_NAMES = 1_000;

// These are limits of the calling code, not of a caller's input, hence RangeError.

export function assertBatch(requests: readonly { readonly tag: string }[]): void {
  if (requests.length > MAX_BATCH) throw new RangeError(`${requests.length} requests in a batch`);
  const tags = new Set(requests.map((request) => request.tag));
  if (tags.size !== requests.length) throw new RangeError("a tag occurs twice in a batch");
}

/** Callers of a sequence share one grant, and a part of it would leave some of them without ids. */
const TAKES_PART: Readonly<Record<GrantRequest["kind"], boolean>> = {
  segment: true,
  sequence: false,
};

export function assertGrants(requests: readonly GrantRequest[]): void {
  assertBatch(requests);
  for (const { kind, count, minCount, after, seenVersion } of requests) {
    const isGood =
      Number.isSafeInteger(count) &&
      Number.isSafeInteger(minCount) &&
      minCount >= 1 &&
      minCount <= count &&
      (TAKES_PART[kind] || minCount === count) &&
      after >= 0n &&
      seenVersion >= 0n;
    if (!isGood) throw new RangeError(`a grant of ${minCount} to ${count} ids after ${after}`);
  }
}

export function assertRaise(request: RaiseRequest): void {
  const { tag, by, atLeast, generationFrom = 0n, seenVersion } = request;
  const isGood =
    [by, atLeast, generationFrom].every((value) => value >= 0n && value <= MAX_ID) &&
    seenVersion >= 0n;
  if (!isGood) throw new RangeError(`a raise of "${tag}" by ${by} to at least ${atLeast}`);
}

export function assertMarks(risen: readonly RedisMark[], asked: readonly MarkedGeneration[]): void {
  assertBatch(risen);
  assertBatch(asked);
  for (const { tag, generation, mark } of risen) {
    const isGood = [generation, mark].every((value) => value >= 0n && value <= MAX_ID);
    if (!isGood) throw new RangeError(`a mark of "${tag}" at ${mark} of ${generation}`);
  }
}

export function assertLease({ instance, reserveAheadMs }: WorkerLeaseRequest): void {
  const wrong =
    instanceViolation("instance", instance) ??
    reserveAheadViolation("reserve_ahead", reserveAheadMs);
  if (wrong !== undefined) throw new RangeError(`${wrong.field} ${wrong.description}`);
}

export function assertRenewal({ reserveAheadMs, reserveUntilMs }: WorkerRenewal): void {
  const wrong = reserveAheadViolation("reserve_ahead", reserveAheadMs);
  if (wrong !== undefined) throw new RangeError(`${wrong.field} ${wrong.description}`);
  if (!Number.isSafeInteger(reserveUntilMs) || reserveUntilMs < 0) {
    throw new RangeError(`a reservation until ${reserveUntilMs}`);
  }
}

export function assertLedger(rows: readonly LedgerRow[]): void {
  if (rows.length > MAX_LEDGER_BATCH) throw new RangeError(`${rows.length} rows in a batch`);
  for (const { tag, firstId, lastId } of rows) {
    if (firstId >= 0n && lastId >= firstId && lastId <= MAX_ID) continue;
    throw new RangeError(`a row about ids ${firstId} to ${lastId} of "${tag}"`);
  }
}

export function assertTraffic({ server, weight, revision }: Traffic): void {
  const isGood =
    server.length >= 1 &&
    server.length <= 128 &&
    Number.isInteger(weight) &&
    weight >= 0 &&
    weight <= MAX_WEIGHT &&
    revision >= 0n;
  if (!isGood) throw new RangeError(`a weight of ${weight} for "${server}" after ${revision}`);
}

export function assertClaims({ claims }: Claims): void {
  if (claims.length > MAX_CLAIMS) throw new RangeError(`${claims.length} claims in a page`);
  const keys = new Set(claims.map(({ tag, period }) => `${tag} ${period}`));
  if (keys.size !== claims.length) throw new RangeError("a tag and period is claimed twice");
  for (const { tag, last } of claims) {
    if (last < 1n || last > MAX_ID) throw new RangeError(`a claim of "${tag}" up to ${last}`);
  }
}

export function assertAudit(events: readonly AuditEvent[]): void {
  const isGood =
    events.length <= MAX_AUDIT_BATCH &&
    events.every(({ before, after }) => before.length + after.length <= 2 * MAX_AUDIT_TEXT);
  if (!isGood) throw new RangeError(`${events.length} audit events, or too long a text of one`);
}

export function assertNames(names: readonly unknown[]): void {
  if (names.length > MAX_NAMES) throw new RangeError(`${names.length} names in one call`);
}

export function assertPage(limit: number): void {
  if (!Number.isInteger(limit) || limit < 1 || limit > 100_000) {
    throw new RangeError(`a page of ${limit}`);
  }
}

/** Throws for a bad gap. It is the operator's word, so the error is the operator's too. */
export function assertGap(gap: bigint): void {
  if (gap >= 0n && gap <= MAX_ID) return;
  throw invalidField("gap", `must be 0 to ${MAX_ID}, got ${gap}`);
}
