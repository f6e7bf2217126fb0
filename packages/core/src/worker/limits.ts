import type { FieldViolation } from "../errors.ts";

/**
 * How long a lease lasts without a renewal. This frees the worker ids of dead holders; uniqueness does not rest on it.
 */
export const WORKER_TTL_MS = 30_000;
/** How far reservations may lead the registry's clock, or the tag's floor, beyond what is reserved ahead of use. */
export const MAX_LEAD_MS = 10_000;
export const DEFAULT_RESERVE_AHEAD_MS = 3_000;
const MIN_RESERVE_AHEAD_MS = 1_000;
export const MAX_RESERVE_AHEAD_MS = 60_000;

const INSTANCE = /^[A-Za-z0-9][A-Za-z0-9._:/#-]{0,127}$/;

/** What is wrong with the name of a holder, or undefined. */
export function instanceViolation(field: string, instance: string): FieldViolation | undefined {
  if (INSTANCE.test(instance)) return undefined;
  if (instance === "") {
    const missing = "is required: a stable name of the maker of the ids";
    return { field, description: missing, reason: "FIELD_REQUIRED" };
  }
  const description =
    "must be 1 to 128 characters of A–Z a–z 0–9 . _ : / # - and start with a letter or digit";
  return { field, description, reason: "INVALID_NAME" };
}

/** What is wrong with how far ahead time is to be reserved, or undefined. */
export function reserveAheadViolation(field: string, ms: number): FieldViolation | undefined {
  if (Number.isInteger(ms) && ms >= MIN_RESERVE_AHEAD_MS && ms <= MAX_RESERVE_AHEAD_MS) {
    return undefined;
  }
  return {
    field,
    description: `must be ${MIN_RESERVE_AHEAD_MS} to ${MAX_RESERVE_AHEAD_MS} whole milliseconds, got ${ms}`,
    reason: "VALUE_OUT_OF_RANGE",
  };
}
