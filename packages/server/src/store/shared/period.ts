import { createRequire } from "node:module";
import type { PeriodDoubt } from "@idmint/core";
import type { PeriodUnit, TagKind } from "@idmint/core/kinds";
import { FORGOTTEN, type OtherPeriod, periodsOf, type Tag } from "@idmint/core/server";
import type * as polyfill from "temporal-polyfill";

/** How the periods of a sequence are cut. */
export interface Cut {
  readonly unit: PeriodUnit;
  readonly timeZone: string;
}

/** Most other periods that a row keeps: of the periods that the tag was in, those with the latest first days. */
export const MAX_OTHER_PERIODS = 10;
/** Most of these that may lie after the present period. */
export const MAX_PERIODS_AHEAD = 5;

/**
 * How far the store's clock may be ahead of a server's, in milliseconds, for that server to begin a period by it. A
 * store whose clock jumped further begins none.
 */
export const CLOCK_BOUND_MS = 10_000;

/** Most ended periods of one tag that one grant forgets. */
export const MAX_FORGOTTEN = 100;

/**
 * How far the clocks of two hosts of one store are taken to differ at most, in milliseconds. An accept begins the period
 * of this much later: the lost history may have begun it by another clock.
 */
export const CLOCK_MARGIN_MS = 300_000;

// The first tag with periods loads it: loading takes longer than all the rest of a SQLite store. The callers run in a
// transaction and cannot wait.
let loaded: typeof polyfill.Temporal | undefined;

function temporal(): typeof polyfill.Temporal {
  loaded ??= (createRequire(import.meta.url)("temporal-polyfill") as typeof polyfill).Temporal;
  return loaded;
}

/** First day (YYYY-MM-DD) of the period that an instant, in milliseconds since 1970, falls into. */
export function periodAt({ unit, timeZone }: Cut, atMs: number): string {
  const instant = temporal().Instant.fromEpochMilliseconds(atMs);
  return FIRST_DAY[unit](instant.toZonedDateTimeISO(timeZone).toPlainDate()).toString();
}

/**
 * When the period with this first day ends, in milliseconds since 1970: the first instant of the next one's first day,
 * which is midnight where the zone has one that day. A first day of another unit means the period that it lies in.
 */
export function periodEnd({ unit, timeZone }: Cut, start: string): number {
  const first = FIRST_DAY[unit](temporal().PlainDate.from(start));
  return first.add(ONE[unit]).toZonedDateTime({ timeZone }).epochMilliseconds;
}

type Day = polyfill.Temporal.PlainDate;

const ONE = {
  DAY: { days: 1 },
  WEEK: { weeks: 1 },
  MONTH: { months: 1 },
  YEAR: { years: 1 },
} as const;

const FIRST_DAY: Readonly<Record<PeriodUnit, (day: Day) => Day>> = {
  DAY: (day) => day,
  WEEK: (day) => day.subtract({ days: day.dayOfWeek - 1 }),
  MONTH: (day) => day.with({ day: 1 }),
  YEAR: (day) => day.with({ month: 1, day: 1 }),
};

/** The period a row is in, empty before the first one, its floor, and the other periods it was in. */
export interface Position {
  readonly start: string;
  readonly floor: bigint;
  readonly others: readonly OtherPeriod[];
}

/** The present period of a row that is locked, and where its ids begin. */
export interface Turn extends Position {
  /** Whether the row's period has ended. */
  readonly hasEnded: boolean;
}

/**
 * INVARIANT: no period begins twice with the same ids. The row's period is the present one until the clock is in a
 * later one, so a clock that goes back changes nothing. Dates are compared as texts, which has the same order. A period
 * that an operator went back from begins again above the ids that it gave. The first period of a tag begins above the
 * floor that it finds, which is 0 unless an operator raised it. A period that is not among the others never began, since
 * the present period is later than all that were forgotten: an operator
 * goes back over those one at a time.
 */
export function turnOf(row: Position, today: string): Turn {
  const { start, floor, others } = row;
  if (start !== "" && start < today) return { ...movedTo(row, today), hasEnded: true };
  return { start: start === "" ? today : start, floor, others, hasEnded: false };
}

function movedTo(row: Position, start: string): Position {
  const floor = row.others.find((other) => other.start === start)?.lastId ?? 0n;
  return { start, floor, others: withPeriod(row.others, { start: row.start, lastId: row.floor }) };
}

/**
 * INVARIANT: all periods after the present one are kept, since they are the latest, and there are few enough
 * (MAX_PERIODS_AHEAD).
 */
export function withPeriod(
  others: readonly OtherPeriod[],
  left: OtherPeriod,
): readonly OtherPeriod[] {
  const kept = [...others.filter(({ start }) => start !== left.start), left];
  return latestFirst(kept).slice(0, MAX_OTHER_PERIODS);
}

function latestFirst(others: readonly OtherPeriod[]): readonly OtherPeriod[] {
  return others.toSorted((a, b) => (a.start < b.start ? 1 : -1));
}

/**
 * The other periods after an accept. The lost history may have given more ids of each. So those after the present one
 * begin above the gap, and whoever goes back to an earlier one has to say where it ended.
 */
export function acceptedPeriods(
  { start, others }: Position,
  gap: bigint,
  ceiling: bigint,
): readonly OtherPeriod[] {
  const ahead = others
    .filter((other) => other.start > start)
    .map((other) => {
      const lastId = other.lastId + gap;
      return { start: other.start, lastId: lastId < ceiling ? lastId : ceiling };
    });
  return forgottenOnlyBefore(start, ahead);
}

/** The others where nothing is known of the periods before this one. */
export function forgottenOnlyBefore(
  start: string,
  others: readonly OtherPeriod[],
): readonly OtherPeriod[] {
  const day = temporal().PlainDate.from(start).subtract({ days: 1 });
  const known = others.filter(({ lastId }) => lastId !== FORGOTTEN);
  return [...known, { start: day.toString(), lastId: FORGOTTEN }];
}

/**
 * The period, and the others, of a tag that is made over the row of a deleted one.
 *
 * INVARIANT: a tag of which an accept knows the latest period alone (claimed-state.ts) begins in that one or in a later one, and
 * its floor is above the ids of all. So none comes back, and none begins from nothing that somebody has ids of. Servers that were
 * not heard may have been in a later one: as in an accept, that is the one of five minutes later at most.
 */
export function placeOfMade(
  { periodStart, otherPeriods, updatedAtMs }: Tag,
  kind: TagKind,
): Pick<Tag, "otherPeriods" | "periodStart"> {
  const kept = { periodStart, ...(otherPeriods === undefined ? {} : { otherPeriods }) };
  const cut = periodsOf(kind);
  const others = otherPeriods ?? [];
  const isOnlyKnown = others.some((one) => one.lastId === FORGOTTEN && one.start > periodStart);
  const latest = cut === undefined || !isOnlyKnown ? undefined : forgottenPeriod(cut.unit, others);
  if (cut === undefined || latest === undefined) return kept;
  const accepted = periodAt(cut, updatedAtMs + CLOCK_MARGIN_MS);
  const start = latest > accepted ? latest : accepted;
  const ahead = others.filter((other) => other.start > start);
  return { periodStart: start, otherPeriods: forgottenOnlyBefore(start, ahead) };
}

/** First day of the latest period that was forgotten; undefined where all that a tag was in are known. */
export function forgottenPeriod(
  unit: PeriodUnit,
  others: readonly OtherPeriod[],
): string | undefined {
  const day = others.find(({ lastId }) => lastId === FORGOTTEN)?.start;
  return day === undefined ? undefined : FIRST_DAY[unit](temporal().PlainDate.from(day)).toString();
}

/** Other periods as the text of a column; null without any. PostgreSQL writes it too. */
export function otherPeriodsText(others: readonly OtherPeriod[]): string | null {
  if (others.length === 0) return null;
  return JSON.stringify(
    Object.fromEntries(others.map(({ start, lastId }) => [start, `${lastId}`])),
  );
}

export function otherPeriodsFrom(text: string | null): readonly OtherPeriod[] {
  const lastIds = JSON.parse(text ?? "{}") as Record<string, string>;
  return latestFirst(
    Object.entries(lastIds).map(([start, lastId]) => ({ start, lastId: BigInt(lastId) })),
  );
}

/** Why a period is in doubt, where the store has the same clock as its servers. */
export function doubtOf(cut: Cut, start: string, nowMs: number): PeriodDoubt | undefined {
  return start > periodAt(cut, nowMs + CLOCK_MARGIN_MS) ? "AHEAD" : undefined;
}

/** Whether a text is the first day (YYYY-MM-DD) of a period of this unit. */
export function isFirstDay(unit: PeriodUnit, text: string): boolean {
  if (!/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/u.test(text)) return false;
  try {
    return FIRST_DAY[unit](temporal().PlainDate.from(text)).toString() === text;
  } catch {
    return false;
  }
}
