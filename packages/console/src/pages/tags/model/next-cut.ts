import type { PeriodUnit } from "@idmint/core/kinds";

const DAY_MS = 86_400_000;

/** Offset of a zone from UTC at a moment, in minutes; undefined when there is no such zone. */
export type OffsetAt = (zone: string, ms: number) => number | undefined;

/** When the period of a sequence ends in which a moment lies, milliseconds since 1970: the first instant of the next one. */
export function nextCut(
  unit: PeriodUnit,
  zone: string,
  nowMs: number,
  offsetAt: OffsetAt,
): number | undefined {
  const offset = offsetAt(zone, nowMs);
  if (offset === undefined) return undefined;
  const today = Math.floor((nowMs + offset * 60_000) / DAY_MS) * DAY_MS;
  return firstInstant(NEXT_START[unit](new Date(today)), zone, offsetAt);
}

/** The first day of the next period, as midnight at UTC of that date. */
const NEXT_START: Readonly<Record<PeriodUnit, (day: Date) => number>> = {
  DAY: (day) => day.getTime() + DAY_MS,
  WEEK: (day) => day.getTime() + (7 - ((day.getUTCDay() + 6) % 7)) * DAY_MS,
  MONTH: (day) => Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 1),
  YEAR: (day) => Date.UTC(day.getUTCFullYear() + 1, 0, 1),
};

/** The first instant of a date in a zone: its first midnight, or where clocks skip that what they skip to. */
function firstInstant(dateMs: number, zone: string, offsetAt: OffsetAt): number {
  const localAt = (ms: number): number => ms + (offsetAt(zone, ms) ?? 0) * 60_000;
  const isThere = (ms: number): boolean => localAt(ms) >= dateMs;
  // No zone is further from UTC than this, so the date begins in between.
  let [before, after] = [dateMs - 18 * 3_600_000, dateMs + 18 * 3_600_000];
  // Where clocks go back over midnight, a date has two, and the search may find the second. This is the first one.
  const unchanged = before + dateMs - localAt(before);
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (isThere(middle)) after = middle;
    else before = middle;
  }
  return unchanged < after && isThere(unchanged) ? unchanged : after;
}
