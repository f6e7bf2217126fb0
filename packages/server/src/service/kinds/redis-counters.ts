import type { Tag } from "@idmint/core/server";
import type { RedisCounterPorts } from "../redis/counter-ports.ts";
import { RedisSnowflakeCounter } from "./redis-snowflake.ts";
import { RedisSequenceCounter } from "./sequence/redis-counter.ts";

/** Makes what counts the ids of tags in Redis, by kind. */
export function redisCounters(ports: RedisCounterPorts): {
  readonly sequence: (tag: Tag) => RedisSequenceCounter;
  readonly redis_snowflake: (tag: Tag) => RedisSnowflakeCounter;
} {
  return {
    sequence: (tag) => new RedisSequenceCounter(tag, ports),
    redis_snowflake: (tag) => new RedisSnowflakeCounter(tag, ports),
  };
}
