import type { PeriodUnit } from "@idmint/core/kinds";
import { periodName } from "@idmint/core/server";

const DAY_MS = 86_400_000;

const STARTS: Readonly<Record<PeriodUnit, (name: string) => string>> = {
  DAY: (name) => name,
  WEEK: mondayOf,
  MONTH: (name) => `${name}-01`,
  YEAR: (name) => `${name}-01-01`,
};

/** The first day (YYYY-MM-DD) of the period with this name, as answers carry it; undefined when no period has it. */
export function periodStart(unit: PeriodUnit, name: string): string | undefined {
  const start = STARTS[unit](name);
  const atMs = Date.parse(start);
  const isDay = !Number.isNaN(atMs) && new Date(atMs).toISOString().slice(0, 10) === start;
  return isDay && periodName({ unit, start }) === name ? start : undefined;
}

/** The fourth of January is always in the first week of ISO 8601. */
function mondayOf(name: string): string {
  const [, year = "", week = ""] = /^(\d{4})-W(\d{2})$/u.exec(name) ?? [];
  const fourth = Date.parse(`${year}-01-04`);
  if (week === "" || Number.isNaN(fourth)) return "";
  const daysIn = (new Date(fourth).getUTCDay() + 6) % 7;
  const monday = fourth + (7 * (Number(week) - 1) - daysIn) * DAY_MS;
  return new Date(monday).toISOString().slice(0, 10);
}
