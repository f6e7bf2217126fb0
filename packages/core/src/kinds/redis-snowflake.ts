import {
  composeId,
  COUNTER_BITS,
  COUNTERS_PER_MS,
  lifeEndMs,
  MAX_SNOWFLAKE_SHARD,
  SHARD_BITS,
  TIME_BITS,
} from "./redis-snowflake-layout.ts";
import { DEFAULT_TIME_ORIGIN_MS } from "../snowflake/layout.ts";
import { integerFrom, textFrom } from "./row.ts";
import { settling } from "./settling.ts";
import type { Composed, FieldsOf, KindContext, KindSpec } from "./spec.ts";

/** Settings of a tag of kind redis_snowflake, defaults filled in. */
export interface RedisSnowflakeKind {
  readonly kind: "redis_snowflake";
  /** The shard's number within the ids; 0 … 4,095. */
  readonly shard: number;
  /** Where time begins, milliseconds since 1970. */
  readonly timeOriginMs: number;
  /** Name of the Redis server that counts. */
  readonly redisServer: string;
}

export interface RedisSnowflakeDraft {
  readonly kind: "redis_snowflake";
  readonly shard?: number | undefined;
  readonly time_origin?: number | undefined;
  readonly end_time?: number | undefined;
  readonly redis_server?: string | undefined;
}

const FIELDS: FieldsOf<RedisSnowflakeDraft> = {
  shard: {
    type: "int32",
    default: 0,
    range: [0, MAX_SNOWFLAKE_SHARD],
    change: "never",
    help: "shard within the ids",
  },
  time_origin: {
    type: "time",
    default: DEFAULT_TIME_ORIGIN_MS,
    change: "never",
    help: "where time begins, as a date, a time in UTC or milliseconds since 1970",
  },
  redis_server: {
    type: "text",
    role: "placed",
    change: "any-time",
    help: "Redis server that counts",
  },
  end_time: {
    type: "time",
    role: "output-only",
    of: "time_origin",
    change: "never",
    help: "when the bits of the time run out",
  },
};

function settle(draft: RedisSnowflakeDraft, context: KindContext): RedisSnowflakeKind {
  const of = settling(draft, FIELDS, context);
  const [shard, timeOriginMs] = [of.value("shard"), of.value("time_origin")];
  const redisServer = draft.redis_server ?? context.placement?.redisServerFor(context.name);
  const notHere = "cannot be made here: this server is not configured with redis.urls";
  of.check(redisServer !== undefined, "", notHere, "NOT_CONFIGURED");
  return { kind: "redis_snowflake", shard, timeOriginMs, redisServer: redisServer ?? "" };
}

const COMPOSED: Composed<RedisSnowflakeKind> = {
  bits: () => [
    { name: "time", bits: TIME_BITS },
    { name: "shard", bits: SHARD_BITS },
    { name: "counter", bits: COUNTER_BITS },
  ],
  idsPerSecond: () => BigInt(COUNTERS_PER_MS * 1_000),
  examples: (settings, nowMs) => [
    composeId(settings, nowMs, 0),
    composeId(settings, lifeEndMs(settings.timeOriginMs), COUNTERS_PER_MS - 1),
  ],
  layout: ({ timeOriginMs }) => ({
    timeUnitMs: 1,
    timeOriginMs,
    timeBits: TIME_BITS,
    extensionBits: 0,
    dataCenterBits: 0,
    workerBits: SHARD_BITS,
    sequenceBits: COUNTER_BITS,
  }),
  own: ({ shard }) => ({ worker: shard }),
  isShown: false,
};

export const REDIS_SNOWFLAKE: KindSpec<"redis_snowflake", RedisSnowflakeDraft, RedisSnowflakeKind> =
  {
    name: "redis_snowflake",
    orders: ["UNORDERED"],
    whyOrders: "its ids follow the clock of Redis",
    ids: "number",
    composed: COMPOSED,
    timeEndMs: ({ timeOriginMs }) => lifeEndMs(timeOriginMs) + 1,
    isOfNames: () => false,
    issuesToFloor: true,
    reportsIssued: true,
    isLayout: true,
    fields: FIELDS,
    whyNoCeiling: "its ids end with the bits of their time",
    settle,
    draftOf: ({ kind, shard, timeOriginMs, redisServer }) => ({
      kind,
      shard,
      time_origin: timeOriginMs,
      end_time: lifeEndMs(timeOriginMs),
      redis_server: redisServer,
    }),
    row: {
      write: ({ shard, timeOriginMs, redisServer }) =>
        JSON.stringify({ shard, timeOriginMs, redisShard: redisServer }),
      read: (json) => ({
        kind: "redis_snowflake",
        shard: integerFrom(json["shard"], 0),
        timeOriginMs: integerFrom(json["timeOriginMs"], 0),
        redisServer: textFrom(json["redisShard"]),
      }),
    },
    countedIn: () => "redis",
    redisServer: ({ redisServer }) => redisServer,
    placedIn: (settings, redisServer) => ({ ...settings, redisServer }),
    memoryMs: () => 0,
    mayFollow: () => undefined,
  };
