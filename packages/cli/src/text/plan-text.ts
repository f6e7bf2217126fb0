// The output of `idmint tag create --dry-run`: a tag that is planned and not made.
import { specOf } from "@idmint/core/kinds";
import { idCountsOf, type TagSettings } from "@idmint/core/server";
import type { PlannedTag } from "@idmint/server";
import { plain } from "../process/plain.ts";
import { columns, type Rows } from "./table.ts";
import { settingsJson, settingsRows } from "./tag-text.ts";

const DAY_MS = 86_400_000;
const DAYS_OF_YEAR = 365.25;

/** The plan as rows. */
export function planText(plan: PlannedTag, nowMs: number): string {
  // Servers choose where a tag counts in Redis.
  const settings = settingsRows(plan.tag).filter(([, value]) => value !== "");
  const days = daysLeft(plan.settings, nowMs);
  const rows: Rows = [
    ...settings,
    ...(days === undefined ? [] : [["life", lifeText(days)] as const]),
    ...Object.entries(capacityOf(plan.settings)).map(
      ([key, value]) => [words(key), value] as const,
    ),
    ...(plan.textLength === undefined
      ? []
      : [["text length", lengthText(plan.textLength)] as const]),
    ...plan.examples.map((example) => ["example", plain(example)] as const),
  ];
  return columns(rows);
}

/** The plan as JSON: settings as `idmint tag get --json` has them, and what follows from them. */
export function planJson(plan: PlannedTag, nowMs: number): unknown {
  const { tag, settings, textLength = null, examples } = plan;
  const endMs = endMsOf(settings);
  return {
    tag: settingsJson(tag),
    endTime: endMs === undefined ? null : new Date(endMs).toISOString(),
    daysLeft: daysLeft(settings, nowMs) ?? null,
    capacity: capacityOf(settings),
    textLength,
    examples,
  };
}

/** The first millisecond without ids; undefined for kinds whose ids do not run out with time. */
function endMsOf({ kind }: TagSettings): number | undefined {
  return specOf(kind).timeEndMs(kind);
}

function daysLeft(settings: TagSettings, nowMs: number): number | undefined {
  const endMs = endMsOf(settings);
  return endMs === undefined ? undefined : Math.floor((endMs - nowMs) / DAY_MS);
}

function lifeText(days: number): string {
  return days < 2 * DAYS_OF_YEAR ? `${days} days` : `${(days / DAYS_OF_YEAR).toFixed(1)} years`;
}

/** How many ids there can be. */
function capacityOf(settings: TagSettings): Readonly<Record<string, string>> {
  const counts = Object.entries(idCountsOf(settings)).map(([name, count]) => [name, String(count)]);
  return Object.fromEntries(counts) as Readonly<Record<string, string>>;
}

function lengthText({ shortest, longest }: NonNullable<PlannedTag["textLength"]>): string {
  return shortest === longest ? String(shortest) : `${shortest} to ${longest}`;
}

/** idsPerPeriod → ids per period */
function words(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
