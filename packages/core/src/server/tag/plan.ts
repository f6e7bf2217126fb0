// What a tag would be, told from its settings alone.
import { COUNTERS_PER_MS, composeId, lifeEndMs } from "../../kinds/redis-snowflake-layout.ts";
import { specOf } from "../../kinds/table.ts";
import { periodText } from "../../sequence/period.ts";
import { encode, idsPerSecond, type SnowflakeLayout, tickAt } from "../../snowflake/layout.ts";
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
  if (kind.kind === "snowflake") return { idsPerSecondInAll: idsPerSecondInAll(kind.layout) };
  if (kind.kind === "redis_snowflake") {
    return { idsPerSecondInAll: BigInt(COUNTERS_PER_MS * 1_000) };
  }
  if (specOf(kind).ids === "text") return {};
  const ids = ceiling - firstIdOf(kind) + 1n;
  return periodsOf(kind) === undefined ? { ids } : { idsPerPeriod: ids };
}

function idsPerSecondInAll(layout: SnowflakeLayout): bigint {
  const workers = 2n ** BigInt(layout.dataCenterBits + layout.workerBits);
  return BigInt(idsPerSecond(layout)) * workers;
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
  if (specOf(kind).ids === "text" || unguessable !== undefined) return [];
  const unit = periodsOf(kind)?.unit;
  const start = unit === "WEEK" ? "2026-01-05" : "2026-01-01";
  return exampleIds(settings, nowMs).map((id) => {
    if (format !== undefined) return format.render(id, start);
    return unit === undefined ? String(id) : periodText(periodName({ unit, start }), id);
  });
}

function exampleIds({ kind, ceiling }: TagSettings, nowMs: number): readonly bigint[] {
  if (kind.kind === "snowflake") {
    const { layout, dataCenter } = kind;
    const now = { tick: tickAt(layout, nowMs), extension: 0, dataCenter, worker: 0, sequence: 0 };
    return [encode(layout, now), ceiling];
  }
  if (kind.kind === "redis_snowflake") {
    const last = COUNTERS_PER_MS - 1;
    return [composeId(kind, nowMs, 0), composeId(kind, lifeEndMs(kind.timeOriginMs), last)];
  }
  return [firstIdOf(kind), ceiling];
}
