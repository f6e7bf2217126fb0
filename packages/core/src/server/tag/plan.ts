// What a tag would be, told from its settings alone.
import { specOf } from "../../kinds/table.ts";
import { periodText } from "../../sequence/period.ts";
import type { TextFormat } from "../format/format.ts";
import { periodName } from "./period-name.ts";
import { firstIdOf, periodsOf, type TagSettings } from "./tag.ts";

/** How many ids there can be, by what they are counted in. Empty for kinds whose ids are text by themselves. */
export interface IdCounts {
  readonly idsPerSecondInAll?: bigint;
  readonly ids?: bigint;
  readonly idsPerPeriod?: bigint;
}

export function idCountsOf({ kind, ceiling }: TagSettings): IdCounts {
  const spec = specOf(kind);
  if (spec.composed !== undefined) return { idsPerSecondInAll: spec.composed.idsPerSecond(kind) };
  if (spec.ids === "text") return {};
  const ids = ceiling - firstIdOf(kind) + 1n;
  return periodsOf(kind) === undefined ? { ids } : { idsPerPeriod: ids };
}

/**
 * Two ids of a tag as callers would get them: the first and the last; for ids with a time one of now and the last. Those of
 * a sequence with periods are of one period. None for kinds whose ids are text, and for unguessable ids, which only a key
 * makes.
 */
export function exampleTexts(
  settings: TagSettings,
  nowMs: number,
  format: TextFormat | undefined,
): readonly string[] {
  const { kind, unguessable } = settings;
  const { ids, composed } = specOf(kind);
  if (ids === "text" || unguessable !== undefined) return [];
  const unit = periodsOf(kind)?.unit;
  const start = unit === "WEEK" ? "2026-01-05" : "2026-01-01";
  const examples = composed?.examples(kind, nowMs) ?? [firstIdOf(kind), settings.ceiling];
  return examples.map((id) => {
    if (format !== undefined) return format.render(id, start);
    return unit === undefined ? String(id) : periodText(periodName({ unit, start }), id);
  });
}
