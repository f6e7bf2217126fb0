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
