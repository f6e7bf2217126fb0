import { MAX_SEGMENT_COUNT, type SegmentKind } from "@idmint/core";
import { check, checkStart, type KindContext } from "./draft.ts";

/** Defaults and bounds of a segment tag, as proto/idmint/v1/tag.proto documents them. */
const DEFAULT_START = 1n;
const DEFAULT_MIN = 1_000;
const DEFAULT_MAX = 100_000_000;
const DEFAULT_HOLD_FOR_MS = 15 * 60_000;
const DEFAULT_MAX_AGE_MS = 10 * 60_000;
const MIN_DURATION_MS = 1_000;
const MAX_DURATION_MS = 24 * 3_600_000;

export interface SegmentDraft {
  readonly kind: "segment";
  readonly start: bigint;
  readonly min: number;
  readonly max: number;
  /** NaN: a duration that no number of milliseconds is. */
  readonly holdForMs: number | undefined;
  readonly maxAgeMs: number | undefined;
}

/** A draft in which every field is the default. */
export const DEFAULT_SEGMENT: SegmentDraft = {
  kind: "segment",
  start: 0n,
  min: 0,
  max: 0,
  holdForMs: undefined,
  maxAgeMs: undefined,
};

export function segmentOf(draft: SegmentDraft, context: KindContext): SegmentKind {
  const start = draft.start === 0n ? DEFAULT_START : draft.start;
  const min = draft.min === 0 ? DEFAULT_MIN : draft.min;
  const max = draft.max === 0 ? DEFAULT_MAX : draft.max;
  const holdForMs = draft.holdForMs ?? DEFAULT_HOLD_FOR_MS;
  const maxAgeMs = draft.maxAgeMs ?? DEFAULT_MAX_AGE_MS;
  checkStart(context, "tag.segment.start", start);
  check(
    context,
    max >= 1 && max <= MAX_SEGMENT_COUNT,
    "tag.segment.max",
    `must be 1 to ${MAX_SEGMENT_COUNT}, got ${max}`,
    "VALUE_OUT_OF_RANGE",
  );
  check(
    context,
    min >= 1 && (min <= max || max < 1),
    "tag.segment.min",
    `must be 1 to max, which is ${max}${defaulted(draft.max)}; got ${min}${defaulted(draft.min)}`,
    "VALUE_OUT_OF_RANGE",
  );
  const duration = "must be 1 s to 24 h, in whole milliseconds";
  check(context, isDuration(holdForMs), "tag.segment.hold_for", duration, "VALUE_OUT_OF_RANGE");
  check(context, isDuration(maxAgeMs), "tag.segment.max_age", duration, "VALUE_OUT_OF_RANGE");
  return { kind: "segment", start, min, max, holdForMs, maxAgeMs };
}

function defaulted(value: number): string {
  return value === 0 ? " (the default)" : "";
}

function isDuration(ms: number): boolean {
  return Number.isInteger(ms) && ms >= MIN_DURATION_MS && ms <= MAX_DURATION_MS;
}
