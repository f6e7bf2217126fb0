// How settings are typed, at the command line and in forms.
import type { Field } from "./spec.ts";

/** A kind, or a value of an enum, as it is typed. */
export function wordOf(value: string): string {
  return value.toLowerCase().replaceAll("_", "-");
}

/** The flag of a field, by its path in `flatFields`; undefined when it has none. */
export function flagOf(path: string, { role, flag }: Field): string | undefined {
  const isAsked = role === undefined || role === "input-only";
  if (!isAsked || flag === null) return undefined;
  return `--${flag ?? path.split(".").at(-1)?.replaceAll("_", "-")}`;
}

// The units of the server's configuration, and days.
const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** The milliseconds of a length of time with its unit: 500ms, 90s, 15m, 24h, 400d. Undefined for any other text. */
export function durationFrom(text: string): number | undefined {
  const [, count, unit = ""] = /^(\d{1,9})(ms|s|m|min|h|d)$/.exec(text) ?? [];
  const unitMs = UNIT_MS[unit];
  return unitMs === undefined ? undefined : Number(count) * unitMs;
}
