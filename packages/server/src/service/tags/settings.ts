import {
  type FieldViolation,
  type InvalidReason,
  MAX_ID,
  MAX_SAFE_ID,
  tagNameViolation,
} from "@idmint/core";
import type { Order } from "@idmint/core/kinds";
import { type KeyCheck, MAX_DESCRIPTION_LENGTH, type TagSettings } from "@idmint/core/server";
import { KIND_NAMES, type KindDraft, type Places, specOf } from "@idmint/core/kinds";
import type { TextPorts } from "../issue/tag-text.ts";
import { type WritingDraft, writingOf } from "./writing.ts";

/** Settings as a caller wrote them: zero and undefined mean the default, and anything may be out of range. */
export interface TagDraft extends WritingDraft {
  readonly name: string;
  readonly description: string;
  /** `undefined`: the default of the kind; `UNKNOWN`: a value this server does not know. */
  readonly order: Order | "UNKNOWN" | undefined;
  readonly ceiling: bigint;
  readonly kind: KindDraft | undefined;
}

/** Settings with defaults filled in, or everything that is wrong with them. Nothing is clamped. */
export function settingsOf(
  draft: TagDraft,
  ports: {
    /** Milliseconds since 1970. */
    readonly nowMs: number;
    /** Where a new tag would count; undefined: the tag has its place already. */
    readonly placement: Places | undefined;
    readonly texts: TextPorts;
    /** Keys the tag had before. */
    readonly keys: readonly KeyCheck[];
  },
):
  | { readonly settings: TagSettings }
  | { readonly violations: readonly [FieldViolation, ...FieldViolation[]] } {
  const violations: FieldViolation[] = [];
  const { name, description } = draft;
  const isShort = Array.from(description).length <= MAX_DESCRIPTION_LENGTH;
  const badName = tagNameViolation("tag.name", name);
  if (badName !== undefined) violations.push(badName);
  const tooLong = `must be at most ${MAX_DESCRIPTION_LENGTH} characters`;
  check({ violations }, isShort, "tag.description", tooLong, "VALUE_OUT_OF_RANGE");
  const isText = !description.includes("\0");
  check(
    { violations },
    isText,
    "tag.description",
    "must hold no NUL character",
    "INVALID_ARGUMENT",
  );
  const order = orderOf(draft, violations);
  const ceiling = ceilingOf(draft, violations);
  const kinds = KIND_NAMES.join(", ");
  const missing = `is required: set one of the kinds, which are: ${kinds}`;
  check({ violations }, draft.kind !== undefined, "tag.kind", missing, "FIELD_REQUIRED");
  const { nowMs, placement } = ports;
  const context = { name, ceiling, violations, nowMs, placement };
  const spec = draft.kind === undefined ? undefined : specOf(draft.kind);
  const kind = draft.kind === undefined ? undefined : spec?.settle(draft.kind, context);
  const [first, ...others] = violations;
  if (first !== undefined) return { violations: [first, ...others] };
  if (kind === undefined || order === undefined) throw new Error("a violation went missing");
  const highest = spec?.ceiling?.(kind) ?? ceiling;
  const settings = { name, description, order, ceiling: highest, kind };
  const written = writingOf(draft, settings, ports);
  return "violations" in written ? written : { settings: { ...settings, ...written } };
}

/** Settings as a draft that asks for exactly them. */
export function draftOf(tag: TagSettings): TagDraft {
  const { name, description, order, unguessable } = tag;
  const spec = specOf(tag.kind);
  // One that follows from the settings cannot be asked for.
  const ceiling = spec.ceiling === undefined ? tag.ceiling : 0n;
  const format = tag.format?.template;
  return { name, description, order, ceiling, kind: spec.draftOf(tag.kind), format, unguessable };
}

function orderOf({ order, kind }: TagDraft, violations: FieldViolation[]): Order | undefined {
  check(
    { violations },
    order !== "UNKNOWN",
    "tag.order",
    "must be one of ORDER_UNORDERED, ORDER_PER_CLIENT, ORDER_STRICT",
    "UNKNOWN_VALUE",
  );
  if (kind === undefined || order === "UNKNOWN") return undefined;
  const { orders, whyOrders } = specOf(kind);
  const known = orders.map((each) => `ORDER_${each}`).join(" or ");
  check(
    { violations },
    order === undefined || orders.includes(order),
    "tag.order",
    `must be ${known}, or empty, with kind ${kind.kind}: ${whyOrders}`,
    "FIELD_CONFLICT",
  );
  return order ?? orders[0];
}

function ceilingOf({ ceiling: wanted, kind }: TagDraft, violations: FieldViolation[]): bigint {
  const spec = kind === undefined ? undefined : specOf(kind);
  const max = (kind === undefined ? undefined : spec?.maxCeiling?.(kind)) ?? MAX_ID;
  const why = max === MAX_SAFE_ID ? ": Redis counts no further than 2^53 − 1" : "";
  const ceiling = wanted === 0n ? max : wanted;
  check(
    { violations },
    ceiling > 0n && ceiling <= max,
    "tag.ceiling",
    `must be 1 to ${max}, or 0 for the default${why}`,
    "VALUE_OUT_OF_RANGE",
  );
  check(
    { violations },
    spec?.whyNoCeiling === undefined || ceiling === MAX_ID || ceiling < 1n,
    "tag.ceiling",
    `must be empty with kind ${spec?.name}: ${spec?.whyNoCeiling}`,
    "FIELD_CONFLICT",
  );
  return ceiling;
}

/** Notes a violation unless all is well. */
function check(
  { violations }: { readonly violations: FieldViolation[] },
  isGood: boolean,
  field: string,
  description: string,
  reason: InvalidReason,
): void {
  if (!isGood) violations.push({ field, description, reason });
}
