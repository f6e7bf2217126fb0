import { IdmintError } from "@idmint/core";
import type { Order } from "@idmint/core/kinds";
import {
  periodsOf,
  type Tag,
  type TagPage,
  type TagState,
  type UnreadableTag,
} from "@idmint/core/server";
import { countsInRedis } from "@idmint/core/kinds";
import { schemaMismatch } from "./failures.ts";
import { otherPeriodsFrom, otherPeriodsText } from "./period.ts";
import { columnFrom, columnOf } from "./text-settings.ts";

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
  /** What `columnOf` makes of the settings of the kind, the format and the key. */
  readonly settings: string;
  // Copies of what statements need from the settings.
  readonly redis: bigint | boolean;
  readonly period_unit: string | null;
  readonly time_zone: string | null;
  readonly keep_for_ms: Int | null;
  readonly period_start: string | null;
  /** Last ids by first days, as JSON: what `otherPeriodsText` makes. */
  readonly other_periods: string | null;
  readonly generation: Int;
  readonly earlier_memory_ms: Int | null;
  readonly earlier_revision: Int | null;
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
  "settings",
  "redis",
  "period_unit",
  "time_zone",
  "keep_for_ms",
  "period_start",
  "other_periods",
  "generation",
  "earlier_memory_ms",
  "earlier_revision",
  "created_at_ms",
  "updated_at_ms",
];

/** A tag's values in the order of TAG_COLUMNS. */
export function valuesOfTag(tag: Tag): (string | bigint | null)[] {
  const periods = periodsOf(tag.kind);
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
    columnOf(tag),
    countsInRedis(tag.kind) ? 1n : 0n,
    periods?.unit ?? null,
    periods?.timeZone ?? null,
    periods === undefined ? null : BigInt(periods.keepForMs),
    tag.periodStart === "" ? null : tag.periodStart,
    otherPeriodsText(tag.otherPeriods ?? []),
    tag.generation,
    tag.earlier === undefined ? null : BigInt(tag.earlier.memoryMs),
    tag.earlier?.revision ?? null,
    BigInt(tag.createdAtMs),
    BigInt(tag.updatedAtMs),
  ];
}

const WAY_OUT =
  "put the row back as a backup has it and accept the store; or remove it, accept, and make the tag anew with a start above all its ids";

/** A row as a tag. Throws SCHEMA_MISMATCH, with the name and a way out, for one that no release of ours wrote. */
export function tagFromRow(row: TagRow): Tag {
  try {
    return readRow(row);
  } catch (error) {
    throw schemaMismatch(whyUnreadable(row.name, error));
  }
}

/** Why a row cannot be read, and what to do. An error that is not ours comes of a text that is no number, zone or JSON. */
export function whyUnreadable(name: string, error: unknown): string {
  const why =
    error instanceof IdmintError
      ? error.message.slice(`${error.reason}: `.length)
      : `the row of tag "${name}" was changed by hand: ${(error as Error).message}`;
  return `${why}; ${WAY_OUT}`;
}

/** Rows as tags. One that cannot be read keeps no others from being read. */
export function tagsFromRows(rows: readonly TagRow[]): TagPage {
  return tagsFromAll(rows, { nameOf: ({ name }) => name, rowOf: (row) => row });
}

/** The same of whatever has rows in it. `rowOf` may throw too. */
export function tagsFromAll<From>(
  all: readonly From[],
  { nameOf, rowOf }: { nameOf: (from: From) => string; rowOf: (from: From) => TagRow },
): TagPage {
  const tags: Tag[] = [];
  const unreadable: UnreadableTag[] = [];
  for (const from of all) {
    try {
      tags.push(readRow(rowOf(from)));
    } catch (error) {
      const tag = nameOf(from);
      unreadable.push({ tag, detail: whyUnreadable(tag, error) });
    }
  }
  return { tags, unreadable };
}

/** Tags whose names an accept tells. */
const MAX_NAMED = 5;

/** Refuses to accept a store of which a row cannot be read: which ids it stands for is not known. */
export function assertReadable(rows: readonly TagRow[]): void {
  const { unreadable } = tagsFromRows(rows);
  if (unreadable.length === 0) return;
  const names = unreadable.slice(0, MAX_NAMED).map(({ tag }) => tag);
  throw schemaMismatch(
    `nothing was changed, since rows of tags cannot be read: ${names.join(", ")}; ${unreadable[0]?.detail}`,
  );
}

/**
 * The constraints of the table keep every value within its type.
 *
 * INVARIANT: statements and servers use the same settings. Both forms are written together, and a row in which they
 * differ is refused.
 */
function readRow(row: TagRow): Tag {
  const written = columnFrom(row.name, row.kind, row.settings);
  const { kind } = written;
  const periods = periodsOf(kind);
  const agrees =
    Boolean(row.redis) === countsInRedis(kind) &&
    row.period_unit === (periods?.unit ?? null) &&
    row.time_zone === (periods?.timeZone ?? null) &&
    Number(row.keep_for_ms ?? 0) === (periods?.keepForMs ?? 0);
  if (!agrees) {
    throw schemaMismatch(`the row of tag "${row.name}" was changed by hand: its settings differ`);
  }
  return {
    name: row.name,
    description: row.description,
    order: row.id_order as Order,
    ceiling: BigInt(row.ceiling),
    ...written,
    state: row.state as TagState,
    floor: BigInt(row.floor),
    periodStart: row.period_start ?? "",
    ...otherPeriodsOf(row),
    generation: BigInt(row.generation),
    ...earlierOf(row),
    version: BigInt(row.version),
    epoch: BigInt(row.epoch),
    revision: BigInt(row.revision),
    createdAtMs: Number(row.created_at_ms),
    updatedAtMs: Number(row.updated_at_ms),
  };
}

function earlierOf({ earlier_memory_ms, earlier_revision }: TagRow): Pick<Tag, "earlier"> {
  if (earlier_memory_ms === null || earlier_revision === null) return {};
  return {
    earlier: { memoryMs: Number(earlier_memory_ms), revision: BigInt(earlier_revision) },
  };
}

function otherPeriodsOf({ other_periods }: TagRow): Pick<Tag, "otherPeriods"> {
  return other_periods === null ? {} : { otherPeriods: otherPeriodsFrom(other_periods) };
}
