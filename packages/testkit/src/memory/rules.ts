// The rules of a MemoryStore's rows: what follows from a row and a request, without the rows of other tags.
import { isDeepStrictEqual } from "node:util";
import { assertNoViolations, IdmintError, invalidField, type Period } from "@idmint/core";
import type { TagKind } from "@idmint/core/kinds";
import {
  firstIdOf,
  type OtherPeriod,
  type Refused,
  type Tag,
  type TagSettings,
} from "@idmint/core/server";
import {
  countsInRedis,
  firstDayAt,
  isFirstDay,
  knowsTimeZone,
  periodsOf,
  presentPeriod,
} from "./periods.ts";

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
): { row: Tag; period: Period | undefined; ended: OtherPeriod | undefined } {
  const periods = periodsOf(row.kind);
  if (periods === undefined) return { row, period: undefined, ended: undefined };
  const told = presentPeriod(periods, atMs, row.periodStart);
  const isAhead = told.start > presentPeriod(periods, atMs + CLOCK_MARGIN_MS, "").start;
  const period = isAhead ? { ...told, doubt: "AHEAD" as const } : told;
  const begun = { ...row, periodStart: period.start };
  if (row.periodStart === "" || row.periodStart === period.start) {
    return { row: begun, period, ended: undefined };
  }
  const ended = { start: row.periodStart, lastId: row.floor };
  const floor = row.otherPeriods?.find(({ start }) => start === period.start)?.lastId ?? 0n;
  return { row: { ...begun, floor, otherPeriods: beside(row, ended) }, period, ended };
}

/** The ten latest of the periods that a tag is not in, with one more. */
function beside({ otherPeriods = [] }: Tag, left: OtherPeriod): readonly OtherPeriod[] {
  const all = new Map([...otherPeriods, left].map((period) => [period.start, period]));
  return [...all.values()].toSorted((a, b) => b.start.localeCompare(a.start)).slice(0, 10);
}

/** After an accept only periods that are yet to come again are known, above the gap. */
export function acceptedPeriods(row: Tag, gap: bigint): Tag {
  if (periodsOf(row.kind) === undefined) return row;
  const ahead = (row.otherPeriods ?? [])
    .filter(({ start }) => start > row.periodStart)
    .map(({ start, lastId }) => ({
      start,
      lastId: lastId + gap > row.ceiling ? row.ceiling : lastId + gap,
    }));
  return { ...row, otherPeriods: [...ahead, { start: dayBefore(row.periodStart), lastId: -1n }] };
}

/** The period of a tag that is made: none before the latest that was claimed of its name, where only that is known. */
export function madeInPeriod(
  old: Tag | undefined,
  kind: TagKind,
): Pick<Tag, "otherPeriods" | "periodStart"> {
  if (old === undefined) return { periodStart: "" };
  const { periodStart, otherPeriods, updatedAtMs } = old;
  const latest = otherPeriods?.find(({ lastId }) => lastId === -1n)?.start ?? "";
  const periods = periodsOf(kind);
  if (periods === undefined || latest <= periodStart)
    return { periodStart, ...(otherPeriods === undefined ? {} : { otherPeriods }) };
  const begun = firstDayAt(periods.unit, latest);
  const { start } = presentPeriod(periods, updatedAtMs + CLOCK_MARGIN_MS, begun);
  const ahead = otherPeriods?.filter((other) => other.start > start) ?? [];
  return {
    periodStart: start,
    otherPeriods: [...ahead, { start: dayBefore(start), lastId: -1n }],
  };
}

function dayBefore(day: string): string {
  return new Date(Date.parse(day) - 86_400_000).toISOString().slice(0, 10);
}

/** A row in an earlier period; throws where an id of it may have been given that would come again. */
export function returned(row: Tag, start: string, bound: bigint | undefined): Tag {
  const periods = periodsOf(row.kind);
  if (periods === undefined) throw new IdmintError("WRONG_KIND", "a tag without periods");
  const forgotten = row.otherPeriods?.find(({ lastId }) => lastId === -1n)?.start;
  const isForgotten = forgotten !== undefined && start <= forgotten;
  const others = (row.otherPeriods ?? []).map((other) =>
    isForgotten && other.start === forgotten ? { ...other, start: dayBefore(start) } : other,
  );
  const known = others.find((other) => other.start === start)?.lastId;
  const floor = bound ?? known;
  const ahead = others.filter((other) => other.start > start).length;
  assertNoViolations(
    isFirstDay(periods.unit, start) &&
      start < row.periodStart &&
      ahead < 5 &&
      // No period that was forgotten is passed over.
      (!isForgotten || firstDayAt(periods.unit, forgotten) === start)
      ? undefined
      : { field: "period", description: "is no earlier period" },
    floor === undefined || floor < (known ?? 0n) || floor > row.ceiling
      ? { field: "floor", description: "is not above the period's last id" }
      : undefined,
  );
  const otherPeriods = beside(
    { ...row, otherPeriods: others },
    { start: row.periodStart, lastId: row.floor },
  );
  return { ...row, periodStart: start, floor: floor ?? 0n, otherPeriods };
}

/** Slots stay with a tag's name for ever. */
export function slotsKept(old: TagKind | undefined, kind: TagKind): TagKind {
  if (old?.kind !== "ticket" || kind.kind !== "ticket") return kind;
  return { ...kind, slotsId: old.slotsId };
}

/** Settings without the Redis server, the slots and the keys of before, which servers choose. */
export function unplaced(tag: TagSettings): TagSettings {
  const { name, description, order, ceiling, kind, format, unguessable } = tag;
  const settings = {
    name,
    description,
    order,
    ceiling,
    ...(format === undefined ? {} : { format }),
    ...(unguessable === undefined ? {} : { unguessable: { ...unguessable, keys: [] } }),
  };
  if (kind.kind === "ticket") return { ...settings, kind: { ...kind, slotsId: "" } };
  if (kind.kind === "redis_snowflake") return { ...settings, kind: { ...kind, redisServer: "" } };
  if (kind.kind !== "sequence" || kind.redis === undefined) return { ...settings, kind };
  return { ...settings, kind: { ...kind, redis: { ...kind.redis, server: "" } } };
}

type Texts = Pick<TagSettings, "format" | "unguessable">;

/** Whether both write ids in one way, which never changes: by the same template, and all keys of the first are of the second. */
export function areWrittenAlike(old: Texts, next: Texts): boolean {
  const [one, other] = [old.unguessable, next.unguessable];
  const keys = other?.keys ?? [];
  const hasAll = one?.keys.every((key) => keys.some((its) => isDeepStrictEqual(its, key))) ?? true;
  const isSame = isDeepStrictEqual(old.format, next.format) && one?.keyDigits === other?.keyDigits;
  return isSame && hasAll;
}

/** Settings with the keys that a name ever had; of two with one number the new one. */
export function withOldKeys(old: Tag | undefined, settings: TagSettings): TagSettings {
  const { unguessable } = settings;
  if (unguessable === undefined || old?.unguessable === undefined) return settings;
  const isNew = (keyId: number): boolean => unguessable.keys.some((key) => key.keyId === keyId);
  const before = old.unguessable.keys.filter(({ keyId }) => !isNew(keyId));
  const keys = [...before, ...unguessable.keys].toSorted((a, b) => a.keyId - b.keyId);
  return { ...settings, unguessable: { ...unguessable, keys } };
}

/** Over the tombstone of a tag that issued texts only one that writes them alike. */
export function assertTextsHold(tombstone: Tag, settings: TagSettings): void {
  if (tombstone.version === 0n && tombstone.kind.kind !== "ticket") return;
  const isSame =
    areWrittenAlike(tombstone, settings) &&
    (tombstone.unguessable === undefined || tombstone.ceiling === settings.ceiling);
  if (!isSame) throw invalidField("tag.format", "must be that of the deleted tag");
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
  if (kind.kind === "snowflake") return [order, ceiling, name, kind.layout, kind.registry];
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
  if (old.kind === "snowflake" && tombstone.version > 0n) {
    const isSame =
      kind.kind === "snowflake" &&
      kind.registry === old.registry &&
      isDeepStrictEqual(kind.layout, old.layout);
    if (!isSame) throw invalidField("tag.snowflake.layout", "must be that of the deleted tag");
  }
  const unit = periodsOf(old)?.unit;
  if (unit === undefined || tombstone.version === 0n || periodsOf(kind)?.unit === unit) return;
  throw invalidField("tag.sequence.period", `must be ${unit}`);
}
