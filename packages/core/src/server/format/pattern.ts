import { IdmintError } from "../../errors.ts";
import type { PeriodUnit } from "../../kinds/sequence.ts";
import {
  type CivilTime,
  civilOf,
  dateOf,
  dayOf,
  isoWeekOf,
  mondayOf,
  msOf,
  weekdayOf,
} from "./calendar.ts";

/** The fields of a date's pattern. `xx` is the offset from UTC (+0800), `YYYY` and `ww` are the ISO week. */
export type DateToken = "yyyy" | "MM" | "dd" | "HH" | "mm" | "ss" | "SSS" | "xx" | "YYYY" | "ww";

/** A date's pattern: tokens, and between them single characters that stand for themselves. */
export type Pattern = readonly (DateToken | { readonly literal: string })[];

const TOKEN = /yyyy|MM|dd|HH|mm|ss|SSS|xx|YYYY|ww|[-_.:/ TW]/y;
/** Times run from years down, without leaving one out, so that texts sort as their times do. */
const UNITS: readonly DateToken[] = ["yyyy", "MM", "dd", "HH", "mm", "ss", "SSS"];
const UNIT_MS = [0, 0, 86_400_000, 3_600_000, 60_000, 1_000, 1];

/** Reads a pattern. Answers the position of the first character that begins no token, if there is one. */
export function readPattern(text: string): Pattern | number {
  const pattern: (DateToken | { literal: string })[] = [];
  let at = 0;
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const [found] = TOKEN.exec(text) ?? [];
    if (found === undefined) return at;
    pattern.push(found.length === 1 ? { literal: found } : (found as DateToken));
    at += found.length;
  }
  return pattern;
}

/** The tokens of a pattern, without the characters between them. */
export function tokensOf(pattern: Pattern): readonly DateToken[] {
  return pattern.filter((each) => typeof each === "string");
}

/** The length of what a pattern writes, which never varies. */
export function lengthOf(pattern: Pattern): number {
  let length = 0;
  for (const each of pattern) {
    if (typeof each !== "string") length += 1;
    else length += each === "xx" ? 5 : each.length;
  }
  return length;
}

/** What is wrong with a pattern of a time, in words that complete “the pattern …”; undefined when nothing is. */
export function timePatternFault(pattern: Pattern): string | undefined {
  const tokens = tokensOf(pattern).filter((each) => each !== "xx");
  if (tokens.some((each) => each === "YYYY" || each === "ww"))
    return "must not use the ISO week, which only {period:…} has";
  if (tokens.length === 0 || tokens.some((each, at) => each !== UNITS[at]))
    return "must name yyyy, MM, dd, HH, mm, ss, SSS in this order, each once, without leaving one out";
  if (tokensOf(pattern).filter((each) => each === "xx").length > 1)
    return "must show the offset (xx) once";
  return undefined;
}

/** The length of time that the smallest unit of a pattern stands for, in milliseconds; Infinity for months and years. */
export function precisionMs(pattern: Pattern): number {
  const smallest = UNITS.findLast((each) => pattern.includes(each)) ?? "yyyy";
  return UNIT_MS[UNITS.indexOf(smallest)] || Infinity;
}

/** Writes a moment by a pattern: `ms` since 1970, at an offset from UTC in minutes. Throws past the year 9999. */
export function writeTime(pattern: Pattern, ms: number, offsetMinutes: number): string {
  const time = civilOf(ms + offsetMinutes * 60_000);
  if (time.year < 0 || time.year > 9_999) {
    throw new IdmintError(
      "TIMESTAMP_EXHAUSTED",
      `the year ${time.year} does not fit the four digits of a text`,
    );
  }
  let text = "";
  for (const each of pattern)
    text += typeof each === "string" ? digits(each, time, offsetMinutes) : each.literal;
  return text;
}

function digits(token: DateToken, time: CivilTime, offsetMinutes: number): string {
  if (token !== "xx") return padded(NUMBERS[token](time), token.length);
  const minutes = Math.abs(offsetMinutes);
  const sign = offsetMinutes < 0 ? "-" : "+";
  return `${sign}${padded(Math.floor(minutes / 60), 2)}${padded(minutes % 60, 2)}`;
}

const NUMBERS: Readonly<Record<Exclude<DateToken, "xx">, (time: CivilTime) => number>> = {
  yyyy: (time) => time.year,
  MM: (time) => time.month,
  dd: (time) => time.day,
  HH: (time) => time.hour,
  mm: (time) => time.minute,
  ss: (time) => time.second,
  SSS: (time) => time.millisecond,
  YYYY: (time) => isoWeekOf(dayOf(time.year, time.month, time.day)).year,
  ww: (time) => isoWeekOf(dayOf(time.year, time.month, time.day)).week,
};

function padded(value: number, width: number): string {
  return String(value).padStart(width, "0");
}

/** The fields that a text shows. */
export type DateDigits = { readonly [T in DateToken]?: number };

/**
 * Reads a text of the pattern's length. Answers the position of the first character that does not fit, if there is one.
 */
export function readDigits(pattern: Pattern, text: string): DateDigits | number {
  const found: { [T in DateToken]?: number } = {};
  let at = 0;
  for (const each of pattern) {
    const length = typeof each !== "string" ? 1 : each === "xx" ? 5 : each.length;
    const piece = text.slice(at, at + length);
    if (typeof each !== "string") {
      if (piece !== each.literal) return at;
    } else {
      const signed = each === "xx" && /^[+-]/.test(piece);
      const number = signed ? piece.slice(1) : piece;
      const bad = /[^0-9]/.exec(number)?.index;
      if (bad !== undefined || (each === "xx" && !signed))
        return at + (signed ? 1 : 0) + (bad ?? 0);
      found[each] = each === "xx" ? offsetOfDigits(piece) : Number(number);
    }
    at += length;
  }
  return found;
}

function offsetOfDigits(text: string): number {
  const minutes = Number(text.slice(1, 3)) * 60 + Number(text.slice(3));
  return text.startsWith("-") ? -minutes : minutes;
}

/** The first moment that the fields can mean, in milliseconds since 1970, at an offset from UTC in minutes. */
export function timeOf(found: DateDigits, offsetMinutes: number): number {
  const local = msOf({
    year: found.yyyy ?? 1970,
    month: found.MM ?? 1,
    day: found.dd ?? 1,
    hour: found.HH ?? 0,
    minute: found.mm ?? 0,
    second: found.ss ?? 0,
    millisecond: found.SSS ?? 0,
  });
  return local - offsetMinutes * 60_000;
}

/** The pattern that shows a period when its template names none: 20261121, 2026W47, 202611, 2026. */
export const PERIOD_PATTERNS: Readonly<Record<PeriodUnit, Pattern>> = {
  DAY: ["yyyy", "MM", "dd"],
  WEEK: ["YYYY", { literal: "W" }, "ww"],
  MONTH: ["yyyy", "MM"],
  YEAR: ["yyyy"],
};

/** Whether a pattern tells all periods of a unit apart. A month with its day is that month's first day. */
export function showsPeriod(pattern: Pattern, unit: PeriodUnit): boolean {
  const tokens = tokensOf(pattern).join("");
  if (tokens === "yyyyMMdd") return true;
  return tokens === tokensOf(PERIOD_PATTERNS[unit]).join("");
}

/** Writes a period by a pattern; `start` is its first day, YYYY-MM-DD. */
export function writePeriod(pattern: Pattern, start: string): string {
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(start) ?? [];
  if (day === undefined) throw new RangeError(`period start "${start}"`);
  return writeTime(pattern, dayOf(Number(year), Number(month), Number(day)) * 86_400_000, 0);
}

/** The first day of the period that the digits lie in, YYYY-MM-DD. */
export function periodOf(found: DateDigits, unit: PeriodUnit): string {
  const day =
    found.YYYY === undefined
      ? dayOf(found.yyyy ?? 1970, found.MM ?? 1, found.dd ?? 1)
      : mondayOf(found.YYYY, found.ww ?? 1);
  return firstDay(day, unit);
}

function firstDay(day: number, unit: PeriodUnit): string {
  const date = dateOf(unit === "WEEK" ? day - weekdayOf(day) : day);
  const month = unit === "YEAR" ? 1 : date.month;
  const first = unit === "YEAR" || unit === "MONTH" ? 1 : date.day;
  return `${padded(date.year, 4)}-${padded(month, 2)}-${padded(first, 2)}`;
}
