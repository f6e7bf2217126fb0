// The entry @idmint/core/kinds: one table a kind. Servers and the command line load it; the SDK imports only its types.
export { isSameButForPlace, isSameButForTuning, isSameKind } from "./compare.ts";
export { flatFields, isSameValue, plainText, valueAt } from "./fields.ts";
export type { ObjectIdKind } from "./object-id.ts";
export { countsInRedis, hasPlace, inPlaceOf, placedIn, redisServerOf } from "./place.ts";
export {
  composeId,
  COUNTERS_PER_MS,
  lifeEndMs,
  MAX_AHEAD_MS,
  MAX_SNOWFLAKE_COUNT,
  type Position,
  positionOf,
  type RedisSnowflakeLayout,
  runsOf,
} from "./redis-snowflake-layout.ts";
export type { RedisSnowflakeKind } from "./redis-snowflake.ts";
export type { SegmentKind } from "./segment.ts";
export type { Periods, PeriodUnit, SequenceKind } from "./sequence.ts";
export { durationText } from "./settling.ts";
export { type ClockPolicy, type SnowflakeKind, snowflakeLayoutOf } from "./snowflake.ts";
export {
  type Bits,
  type Field,
  type Fields,
  HELD_FOR_EVER_MS,
  type Json,
  type Order,
  type Places,
  type Value,
  type Values,
} from "./spec.ts";
export {
  type AnyKind,
  comesFrom,
  countsToFloor,
  isCounted,
  KIND_NAMES,
  type KindDraft,
  type KindName,
  KINDS,
  asKind,
  specOf,
  type TagKind,
  valueOf,
  valuesOf,
  whyNotHidden,
  withValues,
} from "./table.ts";
export { MAX_SLOTS, type TicketKind } from "./ticket.ts";
export type { UuidKind } from "./uuid.ts";
export { durationFrom, flagOf, wordOf } from "./typed.ts";
