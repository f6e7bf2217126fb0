import type { FieldReason } from "../errors.ts";
import type { Field, FieldsOf, KindContext } from "./spec.ts";

type Name<Draft> = Exclude<keyof Draft, "kind"> & string;
type Known<Value> = Exclude<Value, "UNKNOWN" | undefined>;

/** Reads the fields of a draft one by one, and notes what is wrong with each. */
export interface Settling<Draft> {
  /** What the caller asked for; undefined: nothing. */
  readonly given: <Key extends Name<Draft>>(key: Key) => Known<Draft[Key]> | undefined;
  /** The same with the field's default, which it must have. */
  readonly value: <Key extends Name<Draft>>(key: Key) => Known<Draft[Key]>;
  /** Notes a violation of a field, or of the kind as a whole, unless all is well. */
  readonly check: (
    isGood: boolean,
    key: Name<Draft> | "",
    description: string,
    reason?: FieldReason,
  ) => void;
}

/** Checks each field of a draft by the kind's table; rules across fields are the kind's. */
export function settling<Draft extends { readonly kind: string }>(
  draft: Draft,
  fields: FieldsOf<Draft>,
  { violations, nowMs }: KindContext,
): Settling<Draft> {
  const path = `tag.${draft.kind}`;
  const check: Settling<Draft>["check"] = (isGood, key, description, reason = "FIELD_CONFLICT") => {
    const field = key === "" ? path : `${path}.${key}`;
    if (!isGood) violations.push({ field, description, reason });
  };
  const checked = <Key extends Name<Draft>>(key: Key, value: unknown): Known<Draft[Key]> => {
    const field = fields[key];
    if (value === "UNKNOWN") {
      check(false, key, unknownText(field), "UNKNOWN_VALUE");
      // It is never used, since the draft is refused.
      return field.enum?.values[0] as Known<Draft[Key]>;
    }
    const wrong = rangeText(field, value, nowMs);
    check(wrong === undefined, key, wrong ?? "", "VALUE_OUT_OF_RANGE");
    return value as Known<Draft[Key]>;
  };
  return {
    check,
    given: (key) => (draft[key] === undefined ? undefined : checked(key, draft[key])),
    value: (key) => {
      const value = draft[key] ?? fields[key].default;
      if (value === undefined) throw new Error(`${path}.${key} has no default`);
      return checked(key, value);
    },
  };
}

function unknownText({ enum: type }: Field): string {
  const names = type?.values.map((value) => `${type.name}_${value}`) ?? [];
  return `must be one of ${names.join(", ")}, or empty`;
}

/** What is wrong with a value by itself; undefined: nothing. */
function rangeText(field: Field, value: unknown, nowMs: number): string | undefined {
  if (typeof value !== "number") return undefined;
  const isTime = field.type === "time";
  const [min, max] = isTime ? [0, nowMs] : (field.range ?? [-Infinity, Infinity]);
  if (Number.isInteger(value) && value >= min && value <= max) return undefined;
  if (isTime) return "must be 1970-01-01T00:00:00Z to now, in whole milliseconds";
  if (field.type === "duration") {
    return `must be ${durationText(min)} to ${durationText(max)}, in whole milliseconds`;
  }
  const orDefault = min > 0 && field.default !== undefined ? ", or 0 for the default" : "";
  return `must be ${min} to ${max}${orDefault}, got ${value}`;
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** Milliseconds in the largest unit that states them exactly; one day is 24h. */
export function durationText(ms: number): string {
  for (const [unit, size] of UNITS) {
    const least = unit === "d" ? 2 * size : size;
    if (ms >= least && ms % size === 0) return `${ms / size}${unit}`;
  }
  return `${ms}ms`;
}
