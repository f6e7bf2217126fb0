import type { PeriodUnit } from "../../kinds/sequence.ts";
import type { Period } from "../../sequence/period.ts";

const MONTH_LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

const NAMES: Readonly<Record<PeriodUnit, (start: string) => string>> = {
  DAY: (start) => start,
  WEEK: weekName,
  MONTH: (start) => start.slice(0, "2026-11".length),
  YEAR: (start) => start.slice(0, "2026".length),
};

/** The name of a period as answers carry it: 2026-11-21, 2026-W47, 2026-11 or 2026. */
export function periodName({ unit, start }: Pick<Period, "unit" | "start">): string {
  return NAMES[unit](start);
}

/** The week of ISO 8601 that begins on this Monday. It belongs to the year that has its Thursday. */
function weekName(monday: string): string {
  const [year = 0, month = 0, day = 0] = monday.split("-").map(Number);
  const daysBefore = MONTH_LENGTHS.slice(0, month - 1).reduce((sum, length) => sum + length, 0);
  const leapDay = isLeap(year) && month > 2 ? 1 : 0;
  const thursday = daysBefore + leapDay + day + 3;
  const yearLength = isLeap(year) ? 366 : 365;
  const isNextYear = thursday > yearLength;
  const dayOfYear = isNextYear ? thursday - yearLength : thursday;
  const week = Math.floor((dayOfYear - 1) / 7) + 1;
  return `${isNextYear ? year + 1 : year}-W${String(week).padStart(2, "0")}`;
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}
