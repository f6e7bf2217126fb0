import { MAX_SAFE_ID } from "../../limits.ts";
import { countsInRedis } from "../../kinds/place.ts";
import type { PeriodUnit } from "../../kinds/sequence.ts";
import { isCounted, specOf } from "../../kinds/table.ts";
import { periodsOf, type Tag } from "../tag/tag.ts";

/**
 * What ends the ids of a tag, or what of its callers they outgrow: the tag's ceiling; a column or variable of 32 bits; the
 * integers that JavaScript numbers and floating-point columns hold exactly; the bits of time in the ids themselves; the
 * maximum up to which Redis may count until it is raised.
 */
export type LimitName = "CEILING" | "INT32" | "SAFE_INTEGER" | "TIME_BITS" | "REDIS_MAX";

/** A limit, and when it is reached. */
export interface Horizon {
  readonly limit: LimitName;
  /** The last id within the limit; undefined for TIME_BITS. */
  readonly lastId: bigint | undefined;
  /** Ids that were not handed out yet; undefined where that is not known, and for TIME_BITS. */
  readonly left: bigint | undefined;
  /** Milliseconds since 1970; undefined: it is not known, or not before the year 10000. */
  readonly runsOutAtMs: number | undefined;
}

/** What a forecast is made of. */
export interface Use {
  /** All ids up to this are gone; undefined: it is not known. */
  readonly used: bigint | undefined;
  /** Undefined: it is not known. */
  readonly idsPerSecond: number | undefined;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

const MAX_INT32 = 2n ** 31n - 1n;
/** The year 10000: timestamps of the API end there. */
const END_OF_TIME_MS = 253_402_300_800_000;
const DAY_MS = 86_400_000;
/** Longer than any period of the unit, whatever its time zone does. */
const LONGEST_PERIOD_MS: Readonly<Record<PeriodUnit, number>> = {
  DAY: 2 * DAY_MS,
  WEEK: 8 * DAY_MS,
  MONTH: 32 * DAY_MS,
  YEAR: 367 * DAY_MS,
};

/** The limits of a tag, the nearest last ids first. */
export function horizonsOf(tag: Tag, use: Use): readonly Horizon[] {
  const endMs = specOf(tag.kind).timeEndMs(tag.kind);
  if (endMs !== undefined) {
    return [{ limit: "TIME_BITS", lastId: undefined, left: undefined, runsOutAtMs: endMs }];
  }
  return countedLimits(tag).map(({ limit, lastId }) => horizonOf(tag, use, limit, lastId));
}

function countedLimits(tag: Tag): readonly { limit: LimitName; lastId: bigint }[] {
  const { kind, ceiling, floor } = tag;
  if (!isCounted(kind)) return [];
  const limits: { limit: LimitName; lastId: bigint }[] = [];
  // Ids that are written by a format or a key are not the numbers that are counted.
  const isPlain = tag.format === undefined && tag.unguessable === undefined;
  if (isPlain && ceiling > MAX_INT32) limits.push({ limit: "INT32", lastId: MAX_INT32 });
  if (isPlain && ceiling > MAX_SAFE_ID) limits.push({ limit: "SAFE_INTEGER", lastId: MAX_SAFE_ID });
  limits.push({ limit: "CEILING", lastId: ceiling });
  if (countsInRedis(kind)) limits.push({ limit: "REDIS_MAX", lastId: floor });
  return limits.toSorted((a, b) => (a.lastId < b.lastId ? -1 : a.lastId > b.lastId ? 1 : 0));
}

function horizonOf(
  tag: Tag,
  { used, idsPerSecond, nowMs }: Use,
  limit: LimitName,
  lastId: bigint,
): Horizon {
  if (used === undefined) return { limit, lastId, left: undefined, runsOutAtMs: undefined };
  const left = lastId > used ? lastId - used : 0n;
  if (left === 0n) return { limit, lastId, left, runsOutAtMs: nowMs };
  const atMs =
    idsPerSecond === undefined ? Infinity : nowMs + (Number(left) / idsPerSecond) * 1_000;
  const unit = periodsOf(tag.kind)?.unit;
  // A sequence that begins anew before then never gets there.
  const endMs = unit === undefined ? END_OF_TIME_MS : nowMs + LONGEST_PERIOD_MS[unit];
  return { limit, lastId, left, runsOutAtMs: atMs < endMs ? Math.round(atMs) : undefined };
}
