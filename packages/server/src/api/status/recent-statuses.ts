import type { FieldViolation, IdmintError } from "@idmint/core";
import type { WireStatus } from "./wire-status.ts";

/** Most statuses that are kept; with `MAX_DETAILS_BYTES`, well below a megabyte. */
const MAX_KEPT = 64;
/** Larger details name many fields, and are made each time. */
const MAX_DETAILS_BYTES = 2 * 1_024;

/** What a status is made of, beside the message, which begins with the reason. */
type Said = Pick<IdmintError, "retryAfterMs" | "metadata" | "violations">;

interface Kept extends Said {
  readonly status: WireStatus;
}

/**
 * What was told to callers lately. Whoever calls wrongly mostly repeats the same call, and to make a status takes ten times
 * as long as to answer a good call.
 *
 * INVARIANT: a kept status is told only for an error that says the same in everything that a status is made of.
 */
export class RecentStatuses {
  /** By message, the one that was told longest ago first. */
  readonly #kept = new Map<string, Kept>();

  of(error: IdmintError): WireStatus | undefined {
    const kept = this.#kept.get(error.message);
    if (kept === undefined || !saysTheSame(kept, error)) return undefined;
    this.#kept.delete(error.message);
    this.#kept.set(error.message, kept);
    return kept.status;
  }

  /** `status` never changes from now on. */
  keep(error: IdmintError, status: WireStatus): void {
    const { message, retryAfterMs, metadata, violations } = error;
    // A message that was cut, or details too large to be kept.
    if (message !== status.message || status.details.length > MAX_DETAILS_BYTES) return;
    this.#kept.delete(message);
    if (this.#kept.size >= MAX_KEPT) this.#dropOldest();
    // Not the error itself, which keeps its cause and whatever its stack names.
    const said = { retryAfterMs, metadata, violations };
    this.#kept.set(message, { ...said, status: Object.freeze(status) });
  }

  #dropOldest(): void {
    for (const message of this.#kept.keys()) {
      this.#kept.delete(message);
      return;
    }
  }
}

/** Their messages are the same. */
function saysTheSame(one: Said, other: Said): boolean {
  return (
    one.retryAfterMs === other.retryAfterMs &&
    hasSameMetadata(one.metadata, other.metadata) &&
    one.violations.length === other.violations.length &&
    one.violations.every((violation, at) => isSame(violation, other.violations[at]))
  );
}

function hasSameMetadata(one: IdmintError["metadata"], other: IdmintError["metadata"]): boolean {
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length && names.every((name) => one[name] === other[name])
  );
}

function isSame(one: FieldViolation, other: FieldViolation | undefined): boolean {
  return (
    one.field === other?.field &&
    one.description === other.description &&
    one.reason === other.reason
  );
}
