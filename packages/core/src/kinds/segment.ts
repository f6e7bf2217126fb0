import { MAX_SEGMENT_COUNT } from "../limits.ts";
import { idFrom, integerFrom } from "./row.ts";
import { settling } from "./settling.ts";
import { type FieldsOf, HELD_FOR_EVER_MS, type KindContext, type KindSpec } from "./spec.ts";
import { START, startOf } from "./start.ts";

/** Settings of a tag of kind segment, defaults filled in. */
export interface SegmentKind {
  readonly kind: "segment";
  /** First id; 1 … ceiling. */
  readonly start: bigint;
  /** Fewest ids a server takes from the store at once; 1 … max. */
  readonly min: number;
  /** Most ids a server takes from the store at once; min … 1,000,000,000. */
  readonly max: number;
  /** How long a server's segment shall last at the peak rate, in milliseconds; 1,000 … 86,400,000. */
  readonly holdForMs: number;
  /** How long an SDK may keep a segment, in milliseconds; 1,000 … 86,400,000. */
  readonly maxAgeMs: number;
  /** Ids in a segment for Tinyid's clients, 1 … 10,000,000. Absent: they get none. */
  readonly tinyidStep?: number;
}

export interface SegmentDraft {
  readonly kind: "segment";
  readonly start?: bigint | undefined;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
  readonly hold_for?: number | undefined;
  readonly max_age?: number | undefined;
  readonly tinyid_step?: number | undefined;
}

const FIELDS: FieldsOf<SegmentDraft> = {
  start: START,
  min: {
    type: "int32",
    default: 1_000,
    range: [1, MAX_SEGMENT_COUNT],
    change: "any-time",
    help: "fewest ids that a server takes from the store at once",
  },
  max: {
    type: "int32",
    default: 100_000_000,
    range: [1, MAX_SEGMENT_COUNT],
    change: "any-time",
    help: "most ids that a server takes from the store at once",
  },
  hold_for: {
    type: "duration",
    default: 15 * 60_000,
    range: [1_000, 24 * 3_600_000],
    change: "any-time",
    help: "how long a server's segment should last at the peak rate",
  },
  max_age: {
    type: "duration",
    default: 10 * 60_000,
    range: [1_000, 24 * 3_600_000],
    change: "any-time",
    help: "how long an SDK may keep a segment",
  },
  tinyid_step: {
    type: "int32",
    default: 0,
    range: [0, 10_000_000],
    change: "any-time",
    help: "ids in a segment for Tinyid's clients, which keep it for ever (0: they get none)",
  },
};

function settle(draft: SegmentDraft, context: KindContext): SegmentKind {
  const of = settling(draft, FIELDS, context);
  const start = startOf(of, context);
  const max = of.value("max");
  const min = of.value("min");
  const told = `max, which is ${max}${defaulted(draft.max)}; got ${min}${defaulted(draft.min)}`;
  const isAbove = min > max && min <= MAX_SEGMENT_COUNT && max >= 1;
  of.check(!isAbove, "min", `must be at most ${told}`, "VALUE_OUT_OF_RANGE");
  const [holdForMs, maxAgeMs] = [of.value("hold_for"), of.value("max_age")];
  const step = of.value("tinyid_step");
  return { kind: "segment", start, min, max, holdForMs, maxAgeMs, ...tinyid(step) };
}

function tinyid(step: number): Pick<SegmentKind, "tinyidStep"> {
  return step === 0 ? {} : { tinyidStep: step };
}

function defaulted(value: number | undefined): string {
  return value === undefined ? " (the default)" : "";
}

export const SEGMENT: KindSpec<"segment", SegmentDraft, SegmentKind> = {
  name: "segment",
  orders: ["UNORDERED", "PER_CLIENT"],
  whyOrders: "a server issues from memory, so no order holds over all servers",
  ids: "number",
  composed: undefined,
  timeEndMs: () => undefined,
  isOfNames: () => false,
  issuesToFloor: true,
  reportsIssued: true,
  isLayout: false,
  fields: FIELDS,
  settle,
  draftOf: ({ holdForMs, maxAgeMs, tinyidStep, ...same }) => ({
    ...same,
    hold_for: holdForMs,
    max_age: maxAgeMs,
    tinyid_step: tinyidStep ?? 0,
  }),
  row: {
    write: ({ start, min, max, holdForMs, maxAgeMs, tinyidStep }) =>
      JSON.stringify({ start: String(start), min, max, holdForMs, maxAgeMs, tinyidStep }),
    read: (json) => ({
      kind: "segment",
      start: idFrom(json["start"]),
      min: integerFrom(json["min"], 1),
      max: integerFrom(json["max"], 1),
      holdForMs: integerFrom(json["holdForMs"], 1),
      maxAgeMs: integerFrom(json["maxAgeMs"], 1),
      ...(json["tinyidStep"] === undefined ? {} : tinyid(integerFrom(json["tinyidStep"], 1))),
    }),
  },
  countedIn: () => "store",
  memoryMs: ({ maxAgeMs, tinyidStep }) => (tinyidStep === undefined ? maxAgeMs : HELD_FOR_EVER_MS),
  mayFollow: () => undefined,
};
