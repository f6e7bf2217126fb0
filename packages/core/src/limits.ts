import { type FieldViolation, invalidFields } from "./errors.ts";

/** Largest id of all: ids are positive and fit a signed 64-bit integer. */
export const MAX_ID: bigint = 2n ** 63n - 1n;
/** Largest id that a JavaScript number holds exactly, as a bigint. */
export const MAX_SAFE_ID: bigint = BigInt(Number.MAX_SAFE_INTEGER);
/** Most ids one segment may hold. */
export const MAX_SEGMENT_COUNT = 1_000_000_000;
/** Most ids a call may ask for as segments, unless configured. */
export const MAX_COUNT_AS_SEGMENTS = 10_000_000;
/** Most calls that may wait for one tag, unless configured. */
export const MAX_WAITERS = 10_000;
/** How long an SDK makes ids that are text without asking a server whether the tag still issues. */
export const MAX_TEXT_AGE_MS = 600_000;

const TAG_NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/** What is wrong with the name of a principal, which has the form of a tag's; undefined: nothing. */
export function principalViolation(field: string, name: string): FieldViolation | undefined {
  const violation = tagNameViolation(field, name);
  if (violation === undefined || name !== "") return violation;
  return { ...violation, description: "is required: the name of whoever will use it" };
}

/** What is wrong with a tag's name, or undefined. */
export function tagNameViolation(field: string, name: string): FieldViolation | undefined {
  if (TAG_NAME.test(name)) return undefined;
  if (name === "") {
    return { field, description: "is required: the name of a tag", reason: "FIELD_REQUIRED" };
  }
  const description =
    "must be 1 to 128 characters of A–Z a–z 0–9 . _ : - and start with a letter or digit";
  return { field, description, reason: "INVALID_NAME" };
}

/** What is wrong with a count, or undefined. Counts are never clamped. */
export function countViolation(
  field: string,
  count: number,
  limit: number,
  wayOut: string,
): FieldViolation | undefined {
  if (Number.isInteger(count) && count >= 1 && count <= limit) return undefined;
  const description =
    count > limit
      ? `must be at most ${limit}, got ${count}; ${wayOut}`
      : `must be at least 1, got ${count}`;
  return { field, description, reason: "COUNT_OUT_OF_RANGE" };
}

/** Throws one INVALID_ARGUMENT for all violations there are; does nothing when there are none. */
export function assertNoViolations(...violations: readonly (FieldViolation | undefined)[]): void {
  const found = violations.filter((v) => v !== undefined);
  if (found.length > 0) throw invalidFields(found);
}
