import type { Order, SegmentKind, Tag, TagState } from "@idmint/core";

/** 64-bit integers come as bigint from SQLite and as decimal text from PostgreSQL. */
type Int = bigint | string;

/** A row of the table `tag`; the same columns in every backend. */
export interface TagRow {
  readonly name: string;
  readonly kind: string;
  readonly id_order: string;
  readonly description: string;
  readonly ceiling: Int;
  readonly floor: Int;
  readonly version: Int;
  readonly epoch: Int;
  readonly state: string;
  readonly revision: Int;
  readonly segment_start: Int;
  readonly segment_min: Int;
  readonly segment_max: Int;
  readonly segment_hold_for_ms: Int;
  readonly segment_max_age_ms: Int;
  readonly created_at_ms: Int;
  readonly updated_at_ms: Int;
}

/** The columns of TagRow, in the order of `valuesOfTag`. */
export const TAG_COLUMNS: readonly (keyof TagRow)[] = [
  "name",
  "kind",
  "id_order",
  "description",
  "ceiling",
  "floor",
  "version",
  "epoch",
  "state",
  "revision",
  "segment_start",
  "segment_min",
  "segment_max",
  "segment_hold_for_ms",
  "segment_max_age_ms",
  "created_at_ms",
  "updated_at_ms",
];

/** A tag's values in the order of TAG_COLUMNS. */
export function valuesOfTag(tag: Tag): (string | bigint)[] {
  return [
    tag.name,
    tag.kind.kind,
    tag.order,
    tag.description,
    tag.ceiling,
    tag.floor,
    tag.version,
    tag.epoch,
    tag.state,
    tag.revision,
    tag.kind.start,
    BigInt(tag.kind.min),
    BigInt(tag.kind.max),
    BigInt(tag.kind.holdForMs),
    BigInt(tag.kind.maxAgeMs),
    BigInt(tag.createdAtMs),
    BigInt(tag.updatedAtMs),
  ];
}

/** A row as a tag. The constraints of the table keep every value within its type. */
export function tagFromRow(row: TagRow): Tag {
  return {
    name: row.name,
    description: row.description,
    order: row.id_order as Order,
    ceiling: BigInt(row.ceiling),
    kind: segmentKindFromRow(row),
    state: row.state as TagState,
    floor: BigInt(row.floor),
    version: BigInt(row.version),
    epoch: BigInt(row.epoch),
    revision: BigInt(row.revision),
    createdAtMs: Number(row.created_at_ms),
    updatedAtMs: Number(row.updated_at_ms),
  };
}

function segmentKindFromRow(row: TagRow): SegmentKind {
  return {
    kind: "segment",
    start: BigInt(row.segment_start),
    min: Number(row.segment_min),
    max: Number(row.segment_max),
    holdForMs: Number(row.segment_hold_for_ms),
    maxAgeMs: Number(row.segment_max_age_ms),
  };
}
