import {
  composeId,
  COUNTERS_PER_MS,
  lifeEndMs,
  type Position,
  positionOf,
  type RedisSnowflakeLayout,
} from "../../kinds/redis-snowflake-layout.ts";

/** How far ahead of Redis' clock time is reserved, in milliseconds. */
const RESERVE_AHEAD_MS = 3_000;
/** With less than this left, whoever issues extends the reservation. */
const EXTEND_BELOW_MS = 2_000;

/*
 * Time is reserved ahead of use: the tag's floor in the RDBMS is the highest id that may be issued before it is raised
 * again, and Redis issues none above it. So a new start begins above everything that an earlier Redis can have issued,
 * whatever clocks say.
 *
 * INVARIANTS
 * 1. Ids (before, floor] of one raise are composed of positions from `firstAbove(before)` to the last of
 *    `limitOf(floor)`, and no id of those positions is in the range of another raise.
 * 2. A reservation ends at most 3 s after Redis' clock, however often Redis starts anew: so a new start, which begins
 *    where the reservation before ended, waits 3 s at most.
 */

/** The floor to ask for; undefined when the ids' time is over. */
export function floorToReserve(layout: RedisSnowflakeLayout, nowMs: number): bigint | undefined {
  const endMs = lifeEndMs(layout.timeOriginMs);
  if (nowMs > endMs) return undefined;
  const untilMs = Math.min(Math.max(nowMs, layout.timeOriginMs) + RESERVE_AHEAD_MS, endMs);
  return composeId(layout, untilMs, COUNTERS_PER_MS - 1);
}

/** Whether it is time to extend a reservation. */
export function isEnding(limitMs: number, nowMs: number): boolean {
  return limitMs - nowMs < EXTEND_BELOW_MS;
}

/** The first position whose id is above `before`. */
export function firstAbove(layout: RedisSnowflakeLayout, before: bigint): Position {
  return positionOf(firstWholeMs(layout, before), 0);
}

/** The last millisecond all of whose ids are at most `floor`; before the origin when there is none. */
export function limitOf(layout: RedisSnowflakeLayout, floor: bigint): number {
  return firstWholeMs(layout, floor - BigInt(COUNTERS_PER_MS - 1)) - 1;
}

/** The first millisecond all of whose ids are above `id`. */
function firstWholeMs(layout: RedisSnowflakeLayout, id: bigint): number {
  const { shard, timeOriginMs } = layout;
  const first = BigInt(shard * COUNTERS_PER_MS);
  const step = 1n << 22n;
  return timeOriginMs + (id < first ? 0 : Number((id - first) / step) + 1);
}
