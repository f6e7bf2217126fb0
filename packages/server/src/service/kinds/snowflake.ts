import {
  type ClockPolicy,
  layoutViolations,
  MAX_ID,
  SNOWFLAKE_PRESETS,
  type SnowflakeKind,
  type SnowflakeLayout,
} from "@idmint/core";
import { check, type KindContext } from "./draft.ts";

const DEFAULT_LAYOUT = SNOWFLAKE_PRESETS["41-10-12"];
const DEFAULT_CLOCK_WAIT_MS = 5;
const MAX_CLOCK_WAIT_MS = 1_000;

/** A layout as a caller wrote it. NaN: a time that no number of milliseconds is. */
export interface LayoutDraft extends Omit<SnowflakeLayout, "timeUnitMs" | "timeOriginMs"> {
  readonly timeUnitMs: number | undefined;
  readonly timeOriginMs: number | undefined;
}

export interface SnowflakeDraft {
  readonly kind: "snowflake";
  readonly layout: LayoutDraft | undefined;
  readonly dataCenter: number;
  /** `undefined`: the default; `UNKNOWN`: a value this server does not know. */
  readonly clockPolicy: ClockPolicy | "UNKNOWN" | undefined;
  readonly clockWaitMs: number | undefined;
  readonly registry: SnowflakeKind["registry"] | "UNKNOWN" | undefined;
  readonly allowShortLife: boolean;
  /** The Redis shard that has its registry already; undefined: it is to be placed. */
  readonly redisShard: string | undefined;
}

/** What paths of an update mask ask for when the kind was left empty. */
export const DEFAULT_SNOWFLAKE: SnowflakeDraft = {
  kind: "snowflake",
  layout: undefined,
  dataCenter: 0,
  clockPolicy: undefined,
  clockWaitMs: undefined,
  registry: undefined,
  allowShortLife: false,
  redisShard: undefined,
};

/** Settings as a draft that asks for exactly them. How long the layout still lives was looked at when it was set. */
export function snowflakeDraftOf(kind: SnowflakeKind): SnowflakeDraft {
  return { ...kind, allowShortLife: true, redisShard: kind.redisShard };
}

/** Whether nothing differs but what may change after the first id. */
export function isSameSnowflake(one: SnowflakeKind, other: SnowflakeKind): boolean {
  const fields = Object.keys(DEFAULT_LAYOUT) as (keyof SnowflakeLayout)[];
  return fields.every((field) => one.layout[field] === other.layout[field]);
}

export function snowflakeOf(draft: SnowflakeDraft, context: KindContext): SnowflakeKind {
  const { layout: wanted, dataCenter, allowShortLife } = draft;
  const layout: SnowflakeLayout = {
    ...(wanted ?? DEFAULT_LAYOUT),
    timeUnitMs: wanted?.timeUnitMs ?? DEFAULT_LAYOUT.timeUnitMs,
    timeOriginMs: wanted?.timeOriginMs ?? DEFAULT_LAYOUT.timeOriginMs,
  };
  const { violations, nowMs, ceiling } = context;
  const wrong = layoutViolations("tag.snowflake.layout", layout, { nowMs, allowShortLife });
  violations.push(...wrong);
  check(
    context,
    ceiling === MAX_ID || ceiling < 1n,
    "tag.ceiling",
    "must be empty with kind snowflake: it is the highest id of the layout",
    "FIELD_CONFLICT",
  );
  if (wrong.length === 0) {
    const max = 2 ** layout.dataCenterBits - 1;
    check(
      context,
      Number.isInteger(dataCenter) && dataCenter >= 0 && dataCenter <= max,
      "tag.snowflake.data_center",
      `must be 0 to ${max}, the range of data_center_bits, got ${dataCenter}`,
      "VALUE_OUT_OF_RANGE",
    );
  }
  const clockWaitMs = clockWaitFrom(draft, context);
  const { registry, ...place } = registryFrom(draft, context);
  const clockPolicy = clockPolicyFrom(draft, layout, registry, context);
  return {
    kind: "snowflake",
    layout,
    dataCenter,
    clockPolicy,
    clockWaitMs,
    registry,
    ...place,
  };
}

function clockWaitFrom(
  { clockWaitMs = DEFAULT_CLOCK_WAIT_MS }: SnowflakeDraft,
  context: KindContext,
): number {
  check(
    context,
    Number.isInteger(clockWaitMs) && clockWaitMs >= 0 && clockWaitMs <= MAX_CLOCK_WAIT_MS,
    "tag.snowflake.clock_wait",
    "must be 0 s to 1 s, in whole milliseconds",
    "VALUE_OUT_OF_RANGE",
  );
  return clockWaitMs;
}

function clockPolicyFrom(
  { clockPolicy = "REFUSE" }: SnowflakeDraft,
  layout: SnowflakeLayout,
  registry: SnowflakeKind["registry"],
  context: KindContext,
): ClockPolicy {
  const field = "tag.snowflake.clock_policy";
  const names = "CLOCK_POLICY_REFUSE, CLOCK_POLICY_EXTENSION, CLOCK_POLICY_BACKUP_WORKER";
  check(context, clockPolicy !== "UNKNOWN", field, `must be one of ${names}`, "UNKNOWN_VALUE");
  if (clockPolicy === "UNKNOWN") return "REFUSE";
  if (clockPolicy !== "EXTENSION") return clockPolicy;
  const withoutBits = "must not be CLOCK_POLICY_EXTENSION without extension_bits in the layout";
  check(context, layout.extensionBits > 0, field, withoutBits, "FIELD_CONFLICT");
  check(
    context,
    registry === "STORE",
    field,
    "must not be CLOCK_POLICY_EXTENSION with the registry in Redis, because the store's bound for Redis has no extensions",
    "FIELD_CONFLICT",
  );
  return clockPolicy;
}

/** As many as Redis looks through at once when all worker ids of a data centre were leased before. */
const MAX_REDIS_WORKER_BITS = 16;

function registryFrom(
  draft: SnowflakeDraft,
  context: KindContext,
): Pick<SnowflakeKind, "registry" | "redisShard"> {
  const { registry = "STORE" } = draft;
  const field = "tag.snowflake.registry";
  const names = "WORKER_REGISTRY_STORE, WORKER_REGISTRY_REDIS";
  check(context, registry !== "UNKNOWN", field, `must be one of ${names}`, "UNKNOWN_VALUE");
  if (registry !== "REDIS") return { registry: "STORE" };
  const redisShard = draft.redisShard ?? context.placement?.redisShardFor(context.name);
  check(
    context,
    redisShard !== undefined,
    field,
    "cannot be WORKER_REGISTRY_REDIS here: this server is not configured with redis.urls",
    "INVALID_ARGUMENT",
  );
  const bits = draft.layout?.workerBits ?? DEFAULT_LAYOUT.workerBits;
  check(
    context,
    bits <= MAX_REDIS_WORKER_BITS,
    "tag.snowflake.layout.worker_bits",
    `must be at most ${MAX_REDIS_WORKER_BITS} with the registry in Redis, got ${bits}`,
    "FIELD_CONFLICT",
  );
  return { registry, redisShard: redisShard ?? "" };
}
