import { language, zone } from "../state/settings.ts";

/** Pure where the names say so; the rest reads the chosen language and zone. */
function locale(): string {
  return language.value.value === "zh" ? "zh-Hans" : "en";
}

/** A count or a rate. Ids never come here: they are text, and stay it. */
export function numberText(value: number, digits = 0): string {
  return new Intl.NumberFormat(locale(), { maximumFractionDigits: digits }).format(value);
}

/** A whole number of any size, grouped, from its decimal text. */
export function countText(decimal: string): string {
  return /^-?\d+$/.test(decimal)
    ? new Intl.NumberFormat(locale()).format(BigInt(decimal))
    : decimal;
}

/** A time with its date, in the chosen zone. `value`: RFC 3339, or milliseconds since 1970. */
export function timeText(value: string | number): string {
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) return String(value);
  return new Intl.DateTimeFormat(locale(), {
    dateStyle: "medium",
    timeStyle: "medium",
    ...inZone(),
  }).format(date);
}

/** The time of day alone. */
export function clockText(value: string | number): string {
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) return String(value);
  return new Intl.DateTimeFormat(locale(), { timeStyle: "medium", ...inZone() }).format(date);
}

function inZone(): { readonly timeZone?: "UTC" } {
  return zone.value.value === "utc" ? { timeZone: "UTC" } : {};
}

/** 12,345 as 12.3K, for charts and tiles. */
export function shortText(value: number): string {
  const digits = value < 10 ? 2 : 1;
  return new Intl.NumberFormat(locale(), {
    notation: "compact",
    maximumFractionDigits: digits,
  }).format(value);
}

/** A share of one as a percentage. */
export function shareText(share: number): string {
  return new Intl.NumberFormat(locale(), { style: "percent", maximumFractionDigits: 1 }).format(
    share,
  );
}

const UNITS = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
  [1_000, "second"],
  [1, "millisecond"],
  [0, "microsecond"],
] as const;

/** A duration in its largest unit: 90,000 ms are "1.5 min". */
export function durationText(ms: number): string {
  const size = Math.abs(ms);
  if (size === 0) return numberText(0);
  const [unitMs, unit] = UNITS.find(([least]) => size >= least) ?? UNITS[5];
  const value = unitMs === 0 ? ms * 1_000 : ms / unitMs;
  return new Intl.NumberFormat(locale(), {
    style: "unit",
    unit,
    unitDisplay: "short",
    maximumFractionDigits: Math.abs(value) >= 10 ? 0 : 1,
  }).format(value);
}
