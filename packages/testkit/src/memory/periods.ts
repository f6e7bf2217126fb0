// The periods of a MemoryStore's sequences.
import type { Period } from "@idmint/core";
import type { Periods, TagKind } from "@idmint/core/kinds";
import { Temporal } from "temporal-polyfill";

/** The periods of a tag's sequence, or undefined. */
export function periodsOf(kind: TagKind): Periods | undefined {
  return kind.kind === "sequence" ? kind.periods : undefined;
}

/** Whether Redis counts the ids of such a tag. */
export function countsInRedis(kind: TagKind): boolean {
  if (kind.kind === "snowflake") return kind.registry === "REDIS";
  return kind.kind === "redis_snowflake" || (kind.kind === "sequence" && kind.redis !== undefined);
}

/** Whether a time zone is known, by a name that means the same everywhere. */
export function knowsTimeZone(timeZone: string): boolean {
  if (timeZone !== "UTC" && !/^[A-Za-z_]+(\/[A-Za-z0-9_+-]+)+$/u.test(timeZone)) return false;
  try {
    return Intl.DateTimeFormat("en", { timeZone }).format(0) !== "";
  } catch {
    return false;
  }
}

/** Periods that were asked for lately, by unit and time zone: to make one takes longer than all else that a grant does. */
const lately = new Map<string, readonly { readonly fromMs: number; readonly period: Period }[]>();
const MOST_LATELY = 4;

/** The period an instant lies in, unless the row is in a later one already. */
export function presentPeriod(periods: Periods, atMs: number, rowStart: string): Period {
  const key = `${periods.unit} ${periods.timeZone}`;
  const all = lately.get(key) ?? [];
  const isIn = ({ fromMs, period }: (typeof all)[number]): boolean =>
    fromMs <= atMs && atMs < period.endsAtMs && rowStart <= period.start;
  const known = all.find(isIn);
  if (known !== undefined) return known.period;
  const period = madePeriod(periods, atMs, rowStart);
  const { timeZone } = periods;
  const fromMs = Temporal.PlainDate.from(period.start).toZonedDateTime(timeZone).epochMilliseconds;
  lately.set(key, [{ fromMs, period }, ...all].slice(0, MOST_LATELY));
  return period;
}

function madePeriod(periods: Periods, atMs: number, rowStart: string): Period {
  const { unit, timeZone } = periods;
  const day = Temporal.Instant.fromEpochMilliseconds(atMs)
    .toZonedDateTimeISO(timeZone)
    .toPlainDate();
  const today = String(firstDay(unit, day));
  const start = rowStart > today ? rowStart : today;
  const next = firstDay(unit, Temporal.PlainDate.from(start)).add({
    [`${unit.toLowerCase()}s`]: 1,
  });
  return { start, unit, endsAtMs: next.toZonedDateTime(timeZone).epochMilliseconds };
}

/** Whether a text is the first day of a period. */
export function isFirstDay(unit: Periods["unit"], text: string): boolean {
  const atMs = Date.parse(text);
  if (Number.isNaN(atMs) || new Date(atMs).toISOString().slice(0, 10) !== text) return false;
  return firstDayAt(unit, text) === text;
}

/** First day of the period that a day (YYYY-MM-DD) lies in. */
export function firstDayAt(unit: Periods["unit"], day: string): string {
  return String(firstDay(unit, Temporal.PlainDate.from(day)));
}

function firstDay(unit: Periods["unit"], day: Temporal.PlainDate): Temporal.PlainDate {
  if (unit === "WEEK") return day.subtract({ days: day.dayOfWeek - 1 });
  if (unit === "MONTH") return day.with({ day: 1 });
  return unit === "YEAR" ? day.with({ day: 1, month: 1 }) : day;
}
