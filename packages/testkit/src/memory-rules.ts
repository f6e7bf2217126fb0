// The rules of a MemoryStore's rows: what follows from a row and a request, without the rows of other tags.
import {
  firstIdOf,
  invalidField,
  type Period,
  type Refused,
  type Tag,
  type TagKind,
  type TagSettings,
} from "@idmint/core";
import { countsInRedis, knowsTimeZone, periodsOf, presentPeriod } from "./memory-periods.ts";

/** A refusal of a request, for one tag. */
export function refused(tag: string, reason: Refused["reason"], detail?: string): Refused {
  return { outcome: "refused", tag, reason, ...(detail === undefined ? {} : { detail }) };
}

/** The clocks of a lost history and of its successor differ by no more. */
export const CLOCK_MARGIN_MS = 300_000;

/** A row as it is in the period of this instant, and the period that ended for that. */
export function inPeriodAt(
  row: Tag,
  atMs: number,
): { row: Tag; period: Period | undefined; ended: { start: string; lastId: bigint } | undefined } {
  const periods = periodsOf(row.kind);
  if (periods === undefined) return { row, period: undefined, ended: undefined };
  const period = presentPeriod(periods, atMs, row.periodStart);
  const begun = { ...row, periodStart: period.start };
  if (row.periodStart === "" || row.periodStart === period.start) {
    return { row: begun, period, ended: undefined };
  }
  const ended = { start: row.periodStart, lastId: row.floor };
  return { row: { ...begun, floor: 0n }, period, ended };
}

/** Slots stay with a tag's name for ever. */
export function slotsKept(old: TagKind | undefined, kind: TagKind): TagKind {
  if (old?.kind !== "ticket" || kind.kind !== "ticket") return kind;
  return { ...kind, slotsId: old.slotsId };
}

/** Settings without the Redis shard and the slots, which servers choose. */
export function unplaced({ name, description, order, ceiling, kind }: TagSettings): TagSettings {
  const settings = { name, description, order, ceiling };
  if (kind.kind === "ticket") return { ...settings, kind: { ...kind, slotsId: "" } };
  if (kind.kind === "redis_snowflake") return { ...settings, kind: { ...kind, redisShard: "" } };
  if (kind.kind !== "sequence" || kind.redis === undefined) return { ...settings, kind };
  return { ...settings, kind: { ...kind, redis: { ...kind.redis, shard: "" } } };
}

/** What must not change once ids were issued. */
export function fundamentalsOf({
  order,
  ceiling,
  kind,
}: Pick<TagSettings, "ceiling" | "kind" | "order">): readonly unknown[] {
  const name = kind.kind;
  const start = firstIdOf(kind);
  if (kind.kind === "ticket") return [order, ceiling, name, start, kind.slots];
  if (kind.kind === "redis_snowflake") return [order, ceiling, name, kind.shard, kind.timeOriginMs];
  const periods = periodsOf(kind);
  return [order, ceiling, name, start, periods?.unit, periods?.timeZone, countsInRedis(kind)];
}

/** Throws INVALID_ARGUMENT for a time zone that is not known. */
export function assertTimeZone(kind: TagKind): void {
  const timeZone = periodsOf(kind)?.timeZone;
  if (timeZone === undefined || knowsTimeZone(timeZone)) return;
  throw invalidField("tag.sequence.time_zone", `is not known: ${timeZone}`);
}

/** Some kinds of ids are not held back by the floor, so their tombstones can only become the same again. */
export function assertFloorHolds(tombstone: Tag, kind: TagKind): void {
  const old = tombstone.kind;
  if (old.kind === "ticket" && (kind.kind !== "ticket" || kind.slots !== old.slots)) {
    throw invalidField("tag.ticket.slots", `must be ${old.slots}`);
  }
  const unit = periodsOf(old)?.unit;
  if (unit === undefined || tombstone.version === 0n || periodsOf(kind)?.unit === unit) return;
  throw invalidField("tag.sequence.period", `must be ${unit}`);
}
