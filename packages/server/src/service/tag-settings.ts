import {
  type FieldViolation,
  MAX_DESCRIPTION_LENGTH,
  MAX_ID,
  MAX_SEGMENT_COUNT,
  type Order,
  type SegmentKind,
  tagNameViolation,
  type TagSettings,
} from "@idmint/core";

/** Defaults and bounds of a segment tag, as proto/idmint/v1/tag.proto documents them. */
const DEFAULT_START = 1n;
const DEFAULT_MIN = 1_000;
const DEFAULT_MAX = 100_000_000;
const DEFAULT_HOLD_FOR_MS = 15 * 60_000;
const DEFAULT_MAX_AGE_MS = 10 * 60_000;
const MIN_DURATION_MS = 1_000;
const MAX_DURATION_MS = 24 * 3_600_000;

/** Settings as a caller wrote them: zero and undefined mean the default, and anything may be out of range. */
export interface TagDraft {
  readonly name: string;
  readonly description: string;
  /** `undefined`: the default of the kind; `UNKNOWN`: a value this server does not know. */
  readonly order: Order | "UNKNOWN" | undefined;
  readonly ceiling: bigint;
  readonly kind: SegmentDraft | undefined;
}

interface SegmentDraft {
  readonly kind: "segment";
  readonly start: bigint;
  readonly min: number;
  readonly max: number;
  /** NaN: a duration that no number of milliseconds is. */
  readonly holdForMs: number | undefined;
  readonly maxAgeMs: number | undefined;
}

/** Settings with defaults filled in, or everything that is wrong with them. Nothing is clamped. */
export function settingsOf(
  draft: TagDraft,
):
  | { readonly settings: TagSettings }
  | { readonly violations: readonly [FieldViolation, ...FieldViolation[]] } {
  const violations: FieldViolation[] = [];
  const check = (isGood: boolean, field: string, description: string): void => {
    if (!isGood) violations.push({ field, description });
  };
  const name = tagNameViolation("tag.name", draft.name);
  if (name !== undefined) violations.push(name);
  check(
    Array.from(draft.description).length <= MAX_DESCRIPTION_LENGTH,
    "tag.description",
    `must be at most ${MAX_DESCRIPTION_LENGTH} characters`,
  );
  check(
    draft.order !== "UNKNOWN",
    "tag.order",
    "must be one of ORDER_UNORDERED, ORDER_PER_CLIENT, ORDER_STRICT",
  );
  check(
    draft.order !== "STRICT" || draft.kind === undefined,
    "tag.order",
    "must not be ORDER_STRICT with kind segment: a server issues from memory, so no order holds over all servers",
  );
  const ceiling = draft.ceiling === 0n ? MAX_ID : draft.ceiling;
  check(ceiling > 0n, "tag.ceiling", `must be 1 to ${MAX_ID}, or 0 for the default`);
  check(
    draft.kind !== undefined,
    "tag.kind",
    "is required: set one of the kinds, which are: segment",
  );
  const kind = draft.kind === undefined ? undefined : kindOf(draft.kind, ceiling, check);
  const [first, ...others] = violations;
  if (first !== undefined) return { violations: [first, ...others] };
  if (kind === undefined || draft.order === "UNKNOWN") throw new Error("a violation went missing");
  const { description } = draft;
  const order = draft.order ?? "UNORDERED";
  return { settings: { name: draft.name, description, order, ceiling, kind } };
}

function kindOf(
  draft: SegmentDraft,
  ceiling: bigint,
  check: (isGood: boolean, field: string, description: string) => void,
): SegmentKind {
  const start = draft.start === 0n ? DEFAULT_START : draft.start;
  const min = draft.min === 0 ? DEFAULT_MIN : draft.min;
  const max = draft.max === 0 ? DEFAULT_MAX : draft.max;
  const holdForMs = draft.holdForMs ?? DEFAULT_HOLD_FOR_MS;
  const maxAgeMs = draft.maxAgeMs ?? DEFAULT_MAX_AGE_MS;
  check(
    start >= 1n && (start <= ceiling || ceiling < 1n),
    "tag.segment.start",
    `must be 1 to the tag's ceiling, got ${start}`,
  );
  check(
    max >= 1 && max <= MAX_SEGMENT_COUNT,
    "tag.segment.max",
    `must be 1 to ${MAX_SEGMENT_COUNT}, got ${max}`,
  );
  check(
    min >= 1 && (min <= max || max < 1),
    "tag.segment.min",
    `must be 1 to max, which is ${max}${defaulted(draft.max)}; got ${min}${defaulted(draft.min)}`,
  );
  const duration = "must be 1 s to 24 h, in whole milliseconds";
  check(isDuration(holdForMs), "tag.segment.hold_for", duration);
  check(isDuration(maxAgeMs), "tag.segment.max_age", duration);
  return { kind: "segment", start, min, max, holdForMs, maxAgeMs };
}

function defaulted(value: number): string {
  return value === 0 ? " (the default)" : "";
}

function isDuration(ms: number): boolean {
  return Number.isInteger(ms) && ms >= MIN_DURATION_MS && ms <= MAX_DURATION_MS;
}

/** How one path of an update mask changes what is there. */
type Merge = (old: TagDraft, draft: TagDraft) => TagDraft;

/** The paths an update mask may name. */
export const UPDATE_PATHS: ReadonlyMap<string, Merge> = new Map([
  ["description", top("description")],
  ["order", top("order")],
  ["ceiling", top("ceiling")],
  ["segment.start", ofSegment("start")],
  ["segment.min", ofSegment("min")],
  ["segment.max", ofSegment("max")],
  ["segment.hold_for", ofSegment("holdForMs")],
  ["segment.max_age", ofSegment("maxAgeMs")],
]);

function top(field: "description" | "order" | "ceiling"): Merge {
  return (old, draft) => ({ ...old, [field]: draft[field] });
}

function ofSegment(field: Exclude<keyof SegmentDraft, "kind">): Merge {
  return (old, draft) => {
    const empty: SegmentDraft = {
      kind: "segment",
      start: 0n,
      min: 0,
      max: 0,
      holdForMs: undefined,
      maxAgeMs: undefined,
    };
    // A path into a kind that was left empty asks for its default.
    const value = (draft.kind ?? empty)[field];
    return { ...old, kind: { ...(old.kind ?? empty), [field]: value } };
  };
}
