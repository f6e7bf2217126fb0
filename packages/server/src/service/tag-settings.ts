import {
  type FieldViolation,
  type KeyCheck,
  MAX_DESCRIPTION_LENGTH,
  MAX_ID,
  MAX_SAFE_ID,
  maxIdOf,
  type Order,
  type TagKind,
  tagNameViolation,
  type TagSettings,
} from "@idmint/core";
import { check, type KindContext, type KindDraft } from "./kinds/draft.ts";
import { redisSnowflakeOf } from "./kinds/redis-snowflake.ts";
import { segmentOf } from "./kinds/segment.ts";
import { sequenceDraftOf, sequenceOf } from "./kinds/sequence.ts";
import { snowflakeDraftOf, snowflakeOf } from "./kinds/snowflake.ts";
import { ticketOf } from "./kinds/ticket.ts";
import { objectIdOf, uuidDraftOf, uuidOf } from "./kinds/uuid.ts";
import type { Placement } from "./placement.ts";
import type { TextPorts } from "./tag-text.ts";
import { writingOf } from "./writing.ts";

/** Settings as a caller wrote them: zero and undefined mean the default, and anything may be out of range. */
export interface TagDraft {
  readonly name: string;
  readonly description: string;
  /** `undefined`: the default of the kind; `UNKNOWN`: a value this server does not know. */
  readonly order: Order | "UNKNOWN" | undefined;
  readonly ceiling: bigint;
  readonly kind: KindDraft | undefined;
  /** Undefined: ids are numbers. */
  readonly format: string | undefined;
  /** Undefined: ids are as they were minted. 0 for `keyDigits` means the default. */
  readonly unguessable: { readonly keyId: number; readonly keyDigits: number } | undefined;
}

type KindName = TagKind["kind"];

/** The orders a kind has, its default first, and why it has no others. */
const ORDERS: Readonly<
  Record<KindName, { readonly orders: readonly [Order, ...Order[]]; readonly why: string }>
> = {
  segment: {
    orders: ["UNORDERED", "PER_CLIENT"],
    why: "a server issues from memory, so no order holds over all servers",
  },
  sequence: {
    orders: ["STRICT"],
    why: "each of its ids is larger than all that were answered before it was asked for",
  },
  redis_snowflake: { orders: ["UNORDERED"], why: "its ids follow the clock of Redis" },
  ticket: { orders: ["UNORDERED"], why: "its databases issue beside each other" },
  snowflake: { orders: ["UNORDERED"], why: "each worker makes them by its own clock" },
  uuid: { orders: ["UNORDERED"], why: "each server makes them by itself" },
  object_id: { orders: ["UNORDERED"], why: "each server makes them by itself" },
};

/** Settings with defaults filled in, or everything that is wrong with them. Nothing is clamped. */
export function settingsOf(
  draft: TagDraft,
  ports: {
    /** Milliseconds since 1970. */
    readonly nowMs: number;
    /** Where a new tag would count; undefined: the tag has its place already. */
    readonly placement: Placement | undefined;
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
  const order = orderOf(draft, violations);
  const ceiling = ceilingOf(draft, violations);
  const kinds = Object.keys(ORDERS).join(", ");
  const missing = `is required: set one of the kinds, which are: ${kinds}`;
  check({ violations }, draft.kind !== undefined, "tag.kind", missing, "FIELD_REQUIRED");
  const { nowMs, placement } = ports;
  const context = { name, ceiling, violations, nowMs, placement };
  const kind = draft.kind === undefined ? undefined : kindOf(draft.kind, context);
  const [first, ...others] = violations;
  if (first !== undefined) return { violations: [first, ...others] };
  if (kind === undefined || order === undefined) throw new Error("a violation went missing");
  const settings = { name, description, order, ceiling: highestOf(kind, ceiling), kind };
  const written = writingOf(draft, settings, ports);
  return "violations" in written ? written : { settings: { ...settings, ...written } };
}

/** Settings as a draft that asks for exactly them. */
export function draftOf(tag: TagSettings): TagDraft {
  const { name, description, order, unguessable } = tag;
  // That of a snowflake tag follows from its layout.
  const ceiling = tag.kind.kind === "snowflake" ? 0n : tag.ceiling;
  const format = tag.format?.template;
  return { name, description, order, ceiling, kind: kindDraftOf(tag.kind), format, unguessable };
}

function kindDraftOf(kind: TagKind): KindDraft {
  if (kind.kind === "sequence") return sequenceDraftOf(kind);
  if (kind.kind === "snowflake") return snowflakeDraftOf(kind);
  return kind.kind === "uuid" ? uuidDraftOf(kind) : kind;
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
  const { orders, why } = ORDERS[kind.kind];
  const known = orders.map((each) => `ORDER_${each}`).join(" or ");
  check(
    { violations },
    order === undefined || orders.includes(order),
    "tag.order",
    `must be ${known}, or empty, with kind ${kind.kind}: ${why}`,
    "FIELD_CONFLICT",
  );
  return order ?? orders[0];
}

function ceilingOf({ ceiling: wanted, kind }: TagDraft, violations: FieldViolation[]): bigint {
  const isInRedis = kind?.kind === "sequence" && kind.backend === "REDIS";
  const max = isInRedis ? MAX_SAFE_ID : MAX_ID;
  const why = isInRedis ? ": Redis counts no further than 2^53 − 1" : "";
  const ceiling = wanted === 0n ? max : wanted;
  check(
    { violations },
    ceiling > 0n && ceiling <= max,
    "tag.ceiling",
    `must be 1 to ${max}, or 0 for the default${why}`,
    "VALUE_OUT_OF_RANGE",
  );
  return ceiling;
}

/** The ceiling of a tag, of one that a caller may choose. */
function highestOf(kind: TagKind, ceiling: bigint): bigint {
  return kind.kind === "snowflake" ? maxIdOf(kind.layout) : ceiling;
}

function kindOf(draft: KindDraft, context: KindContext): TagKind {
  switch (draft.kind) {
    case "segment":
      return segmentOf(draft, context);
    case "sequence":
      return sequenceOf(draft, context);
    case "redis_snowflake":
      return redisSnowflakeOf(draft, context);
    case "ticket":
      return ticketOf(draft, context);
    case "snowflake":
      return snowflakeOf(draft, context);
    case "uuid":
      return uuidOf(draft, context);
    case "object_id":
      return objectIdOf(draft, context);
    default:
      return draft satisfies never;
  }
}
