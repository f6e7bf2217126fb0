/** A moment in the Gregorian calendar, month 1 … 12. */
export interface CivilTime {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly millisecond: number;
}

const DAY_MS = 86_400_000;
/** Days of 400 years, after which the calendar repeats. */
const ERA_DAYS = 146_097;
/** From 0000-03-01, where the count begins so that leap days come last in a year, to 1970-01-01. */
const EPOCH_DAYS = 719_468;

/** First millisecond of the year 10000, the first that four digits cannot show. */
export const YEAR_10000_MS: number = dayOf(10_000, 1, 1) * DAY_MS;

/** The moment that lies `ms` after 1970, shown at UTC. */
export function civilOf(ms: number): CivilTime {
  const days = Math.floor(ms / DAY_MS);
  const rest = ms - days * DAY_MS;
  return {
    ...dateOf(days),
    hour: Math.floor(rest / 3_600_000),
    minute: Math.floor(rest / 60_000) % 60,
    second: Math.floor(rest / 1_000) % 60,
    millisecond: rest % 1_000,
  };
}

/** Milliseconds since 1970. What no calendar has (30 February) comes out as the day that many days later. */
export function msOf(time: CivilTime): number {
  const { hour, minute, second, millisecond } = time;
  const ofDay = ((hour * 60 + minute) * 60 + second) * 1_000 + millisecond;
  return dayOf(time.year, time.month, time.day) * DAY_MS + ofDay;
}

/** Days from 1970-01-01 to a date. */
export function dayOf(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  const leapDays = Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100);
  return era * ERA_DAYS + yearOfEra * 365 + leapDays + dayOfYear - EPOCH_DAYS;
}

/** The date that lies `days` after 1970-01-01. */
export function dateOf(days: number): { year: number; month: number; day: number } {
  const shifted = days + EPOCH_DAYS;
  const era = Math.floor(shifted / ERA_DAYS);
  const dayOfEra = shifted - era * ERA_DAYS;
  const leaps =
    Math.floor(dayOfEra / 1_460) - Math.floor(dayOfEra / 36_524) + Math.floor(dayOfEra / 146_096);
  const yearOfEra = Math.floor((dayOfEra - leaps) / 365);
  const yearStart = 365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100);
  const dayOfYear = dayOfEra - yearStart;
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = ((shiftedMonth + 2) % 12) + 1;
  return {
    year: era * 400 + yearOfEra + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1,
  };
}

/** Day of the week, Monday 0 … Sunday 6. */
export function weekdayOf(days: number): number {
  return (((days + 3) % 7) + 7) % 7;
}

/** The ISO week that a day lies in; its year is that of the week's Thursday. */
export function isoWeekOf(days: number): { year: number; week: number } {
  const thursday = days - weekdayOf(days) + 3;
  const { year } = dateOf(thursday);
  return { year, week: Math.floor((thursday - dayOf(year, 1, 1)) / 7) + 1 };
}

/** The Monday of an ISO week, in days since 1970-01-01. */
export function mondayOf(year: number, week: number): number {
  const fourth = dayOf(year, 1, 4);
  return fourth - weekdayOf(fourth) + (week - 1) * 7;
}
