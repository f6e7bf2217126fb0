export const TIME_BITS = 41;
export const SHARD_BITS = 12;
export const COUNTER_BITS = 10;
/** Ids of one shard that share a millisecond. */
export const COUNTERS_PER_MS = 1_024;
/** Largest shard number. */
export const MAX_SNOWFLAKE_SHARD = 4_095;
/** How far ahead of Redis' clock ids are issued when those of a millisecond are used up. */
export const MAX_AHEAD_MS = 50;
/** Most ids of one call: they and what is left of a millisecond fit the time that ids may be ahead. */
export const MAX_SNOWFLAKE_COUNT: number = MAX_AHEAD_MS * COUNTERS_PER_MS;

const COUNTER_SHIFT = BigInt(COUNTER_BITS);
const TIME_SHIFT = BigInt(SHARD_BITS + COUNTER_BITS);
/** The last millisecond since the origin that the bits hold. */
const MAX_TIME = 2 ** TIME_BITS - 1;

/**
 * A place in the order of ids of one shard: milliseconds since 1970 × 1,024 + counter. Exact as a number, and so in
 * Redis' scripts too: below 2^53 for every time before the year 2248.
 */
export type Position = number;

/** What tells the ids of a tag apart from those of others. */
export interface RedisSnowflakeLayout {
  /** 0 … 4,095. */
  readonly shard: number;
  /** Where time begins, milliseconds since 1970; 0 … now. */
  readonly timeOriginMs: number;
}

/** Positions of one millisecond, whose ids are consecutive. */
export interface SnowflakeRun {
  readonly atMs: number;
  readonly counter: number;
  readonly count: number;
}

export function positionOf(atMs: number, counter: number): Position {
  return atMs * COUNTERS_PER_MS + counter;
}

/** The id of a time and a counter: 41 bits of milliseconds since the origin, 12 of shard, 10 of counter. */
export function composeId(
  { shard, timeOriginMs }: RedisSnowflakeLayout,
  atMs: number,
  counter: number,
): bigint {
  const time = atMs - timeOriginMs;
  if (!isWithin(time, MAX_TIME)) throw new RangeError(`${atMs} is out of the ids' time`);
  if (!isWithin(shard, MAX_SNOWFLAKE_SHARD)) throw new RangeError(`${shard} is no shard`);
  if (!isWithin(counter, COUNTERS_PER_MS - 1)) throw new RangeError(`${counter} is no counter`);
  return (BigInt(time) << TIME_SHIFT) | (BigInt(shard) << COUNTER_SHIFT) | BigInt(counter);
}

/** When the bits of the time run out, milliseconds since 1970: the last millisecond that has ids. */
export function lifeEndMs(timeOriginMs: number): number {
  return timeOriginMs + MAX_TIME;
}

/** `count` positions from `first` on, one run for each millisecond they touch, in order. */
export function runsOf(first: Position, count: number): readonly SnowflakeRun[] {
  const runs: SnowflakeRun[] = [];
  for (let at = first, left = count; left > 0;) {
    const counter = at % COUNTERS_PER_MS;
    const taken = Math.min(left, COUNTERS_PER_MS - counter);
    runs.push({ atMs: (at - counter) / COUNTERS_PER_MS, counter, count: taken });
    at += taken;
    left -= taken;
  }
  return runs;
}

function isWithin(value: number, max: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= max;
}
