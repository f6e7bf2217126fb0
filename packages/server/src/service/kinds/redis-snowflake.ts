import { MAX_ID, MAX_SNOWFLAKE_SHARD, type RedisSnowflakeKind } from "@idmint/core";
import { check, type KindContext } from "./draft.ts";

/** As proto/idmint/v1/tag.proto documents it: 2026-01-01T00:00:00Z. */
const DEFAULT_TIME_ORIGIN_MS = Date.UTC(2026, 0, 1);

export interface RedisSnowflakeDraft {
  readonly kind: "redis_snowflake";
  readonly shard: number;
  /** NaN: a time that no number of milliseconds is. */
  readonly timeOriginMs: number | undefined;
  /** The Redis shard it counts in already; undefined: it is to be placed. */
  readonly redisShard: string | undefined;
}

export function redisSnowflakeOf(
  draft: RedisSnowflakeDraft,
  context: KindContext,
): RedisSnowflakeKind {
  const { shard, timeOriginMs = DEFAULT_TIME_ORIGIN_MS } = draft;
  check(
    context,
    Number.isInteger(shard) && shard >= 0 && shard <= MAX_SNOWFLAKE_SHARD,
    "tag.redis_snowflake.shard",
    `must be 0 to ${MAX_SNOWFLAKE_SHARD}, got ${shard}`,
    "VALUE_OUT_OF_RANGE",
  );
  check(
    context,
    Number.isInteger(timeOriginMs) && timeOriginMs >= 0 && timeOriginMs <= context.nowMs,
    "tag.redis_snowflake.time_origin",
    "must be 1970-01-01T00:00:00Z to now, in whole milliseconds",
    "VALUE_OUT_OF_RANGE",
  );
  check(
    context,
    context.ceiling === MAX_ID || context.ceiling < 1n,
    "tag.ceiling",
    "must be empty with kind redis_snowflake: its ids end with the bits of their time",
    "FIELD_CONFLICT",
  );
  const redisShard = draft.redisShard ?? context.placement?.redisShardFor(context.name);
  check(
    context,
    redisShard !== undefined,
    "tag.redis_snowflake",
    "cannot be made here: this server is not configured with redis.urls",
    "INVALID_ARGUMENT",
  );
  return { kind: "redis_snowflake", shard, timeOriginMs, redisShard: redisShard ?? "" };
}
