import { createRequire } from "node:module";
import type { PeriodUnit } from "@idmint/core";
import type * as polyfill from "temporal-polyfill";

/** How the periods of a sequence are cut. */
export interface Cut {
  readonly unit: PeriodUnit;
  readonly timeZone: string;
}

/** Most ended periods of one tag that one grant forgets. */
export const MAX_FORGOTTEN = 100;

/**
 * How far the clocks of two hosts of one store are taken to differ at most, in milliseconds. An accept begins the period
 * of this much later: the lost history may have begun it by another clock.
 */
export const CLOCK_MARGIN_MS = 300_000;

// Loaded by the first tag with periods: it takes longer to load than all the rest of a SQLite store. What asks for it runs
// in a transaction and cannot wait.
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

/** The period a row is in, empty before the first one, and its floor. */
export interface Position {
  readonly start: string;
  readonly floor: bigint;
}

/** The present period of a row that is locked, and where its ids begin. */
export interface Turn {
  readonly start: string;
  /** Highest id of the present period that may have been issued. */
  readonly floor: bigint;
  /** Whether the row's period has ended. */
  readonly hasEnded: boolean;
}

/**
 * INVARIANTS: a period never comes back. The row's period is the present one until the clock is in a later one, so a clock
 * that goes back changes nothing; dates are compared as texts, which is their order. The first period of a tag begins
 * above the floor it finds, which is 0 unless an operator raised it.
 */
export function turnOf(row: Position, today: string): Turn {
  const { start, floor } = row;
  if (start !== "" && start < today) return { start: today, floor: 0n, hasEnded: true };
  return { start: start === "" ? today : start, floor, hasEnded: false };
}
