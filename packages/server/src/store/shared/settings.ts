import {
  MAX_ID,
  type Periods,
  type PeriodUnit,
  type RedisPlace,
  type SequenceKind,
  type SnowflakeKind,
  type TagKind,
  type UuidKind,
} from "@idmint/core";
import { schemaMismatch } from "./failures.ts";

const UNITS: readonly PeriodUnit[] = ["DAY", "WEEK", "MONTH", "YEAR"];
const UUID_VERSIONS = [1, 2, 3, 4, 5, 6, 7] as const;
const DCE_DOMAINS = ["PERSON", "GROUP", "ORG"] as const;
const CLOCK_POLICIES = ["REFUSE", "EXTENSION", "BACKUP_WORKER"] as const;
const REGISTRIES = ["STORE", "REDIS"] as const;
const OBJECT_ID_VARIANTS = ["CLASSIC", "MACHINE_PROCESS"] as const;

/** Settings of a kind as the column `settings` has them: JSON without spaces, its fields in a fixed order. */
export function settingsText(kind: TagKind): string {
  if (kind.kind === "segment") {
    const { start, min, max, holdForMs, maxAgeMs } = kind;
    return JSON.stringify({ start: String(start), min, max, holdForMs, maxAgeMs });
  }
  if (kind.kind === "redis_snowflake") {
    const { shard, timeOriginMs, redisShard } = kind;
    return JSON.stringify({ shard, timeOriginMs, redisShard });
  }
  if (kind.kind === "ticket") {
    const { start, slots, slotsId } = kind;
    return JSON.stringify({ start: String(start), slots, slotsId });
  }
  if (kind.kind === "uuid") {
    if (kind.version === 2) {
      const { version, domain, number } = kind;
      return JSON.stringify({ version, domain, number });
    }
    const { version } = kind;
    return "namespace" in kind
      ? JSON.stringify({ version, namespace: kind.namespace })
      : JSON.stringify({ version });
  }
  if (kind.kind === "object_id") return JSON.stringify({ variant: kind.variant });
  if (kind.kind === "snowflake") return snowflakeText(kind);
  const { start, periods, redis } = kind;
  return JSON.stringify({
    start: String(start),
    periods:
      periods === undefined
        ? null
        : { unit: periods.unit, timeZone: periods.timeZone, keepForMs: periods.keepForMs },
    redis: redis === undefined ? null : { shard: redis.shard, step: redis.step },
  });
}

function snowflakeText(kind: SnowflakeKind): string {
  const { layout, dataCenter, clockPolicy, clockWaitMs, registry, redisShard } = kind;
  const { timeUnitMs, timeOriginMs, timeBits, extensionBits, ...low } = layout;
  const { dataCenterBits, workerBits, sequenceBits } = low;
  const high = { timeUnitMs, timeOriginMs, timeBits, extensionBits };
  return JSON.stringify({
    layout: { ...high, dataCenterBits, workerBits, sequenceBits },
    dataCenter,
    clockPolicy,
    clockWaitMs,
    registry,
    redisShard: redisShard ?? null,
  });
}

/**
 * The settings of a row. Throws SCHEMA_MISMATCH for a text that no release wrote.
 *
 * INVARIANT: what is read is what was written. Every field is checked by itself. The whole is checked by writing it
 * again: a field too many, of another type or in another place makes another text.
 */
export function settingsFromText(tag: string, kind: string, text: string): TagKind {
  let settings: TagKind | undefined;
  try {
    settings = kindOf(kind, JSON.parse(text) as Fields);
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
  }
  if (settings !== undefined && settingsText(settings) === text) return settings;
  throw schemaMismatch(
    `the row of tag "${tag}" was changed by hand or written by another release: it is a ${kind} with the settings ${text}`,
  );
}

type Fields = Readonly<Record<string, unknown>>;

function kindOf(kind: string, fields: Fields): TagKind {
  switch (kind) {
    case "segment":
      return {
        kind,
        start: id(fields["start"]),
        min: integer(fields["min"], 1),
        max: integer(fields["max"], 1),
        holdForMs: integer(fields["holdForMs"], 1),
        maxAgeMs: integer(fields["maxAgeMs"], 1),
      };
    case "sequence":
      return sequenceOf(fields);
    case "redis_snowflake":
      return {
        kind,
        shard: integer(fields["shard"], 0),
        timeOriginMs: integer(fields["timeOriginMs"], 0),
        redisShard: text(fields["redisShard"]),
      };
    case "ticket":
      return {
        kind,
        start: id(fields["start"]),
        slots: integer(fields["slots"], 1),
        slotsId: text(fields["slotsId"]),
      };
    case "snowflake":
      return snowflakeOf(fields);
    case "uuid":
      return uuidOf(fields);
    case "object_id":
      return { kind, variant: oneOf(fields["variant"], OBJECT_ID_VARIANTS) };
    default:
      throw new TypeError(`no kind ${kind}`);
  }
}

function sequenceOf(fields: Fields): SequenceKind {
  const periods = fields["periods"] as Fields | null;
  const redis = fields["redis"] as Fields | null;
  return {
    kind: "sequence",
    start: id(fields["start"]),
    periods: periods === null ? undefined : periodsOf(periods),
    redis: redis === null ? undefined : placeOf(redis),
  };
}

function snowflakeOf(fields: Fields): SnowflakeKind {
  const layout = fields["layout"] as Fields;
  const shard = fields["redisShard"];
  return {
    kind: "snowflake",
    layout: {
      timeUnitMs: integer(layout["timeUnitMs"], 1),
      timeOriginMs: integer(layout["timeOriginMs"], 0),
      timeBits: integer(layout["timeBits"], 1),
      extensionBits: integer(layout["extensionBits"], 0),
      dataCenterBits: integer(layout["dataCenterBits"], 0),
      workerBits: integer(layout["workerBits"], 0),
      sequenceBits: integer(layout["sequenceBits"], 1),
    },
    dataCenter: integer(fields["dataCenter"], 0),
    clockPolicy: oneOf(fields["clockPolicy"], CLOCK_POLICIES),
    clockWaitMs: integer(fields["clockWaitMs"], 0),
    registry: oneOf(fields["registry"], REGISTRIES),
    ...(shard === null ? {} : { redisShard: text(shard) }),
  };
}

function uuidOf(fields: Fields): UuidKind {
  const kind = "uuid";
  const version = oneOf(fields["version"], UUID_VERSIONS);
  if (version === 2) {
    const domain = oneOf(fields["domain"], DCE_DOMAINS);
    return { kind, version, domain, number: integer(fields["number"], 0) };
  }
  if (version !== 3 && version !== 5) return { kind, version };
  return { kind, version, namespace: text(fields["namespace"]) };
}

function periodsOf(fields: Fields): Periods {
  return {
    unit: oneOf(fields["unit"], UNITS),
    timeZone: text(fields["timeZone"]),
    keepForMs: integer(fields["keepForMs"], 1),
  };
}

function placeOf(fields: Fields): RedisPlace {
  return { shard: text(fields["shard"]), step: integer(fields["step"], 1) };
}

function id(value: unknown): bigint {
  if (typeof value !== "string") throw new TypeError("an id is a text");
  const number = BigInt(value);
  if (number < 1n || number > MAX_ID) throw new TypeError(`${value} is no id`);
  return number;
}

function integer(value: unknown, min: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= min) return value as number;
  throw new TypeError(`${String(value)} is no whole number from ${min}`);
}

function oneOf<T extends string | number>(value: unknown, known: readonly T[]): T {
  const found = known.find((each) => each === value);
  if (found !== undefined) return found;
  throw new TypeError(`${String(value)} is none of ${known.join(", ")}`);
}

function text(value: unknown): string {
  if (typeof value === "string") return value;
  throw new TypeError(`${String(value)} is no text`);
}

/** The periods of a tag's sequence; undefined for every other tag. */
export function periodsOfKind(kind: TagKind): Periods | undefined {
  return kind.kind === "sequence" ? kind.periods : undefined;
}

/** Whether the ids or the worker ids of such a tag are kept in Redis, below a bound that the store keeps. */
export function countsInRedis(kind: TagKind): boolean {
  if (kind.kind === "snowflake") return kind.registry === "REDIS";
  return kind.kind === "redis_snowflake" || (kind.kind === "sequence" && kind.redis !== undefined);
}

/** The same settings without what servers choose: the Redis shard a tag was placed on, the slots made for it. */
export function withoutPlace(kind: TagKind): TagKind {
  if (kind.kind === "ticket") return { ...kind, slotsId: "" };
  if (kind.kind === "redis_snowflake") return { ...kind, redisShard: "" };
  if (kind.kind === "snowflake" && kind.registry === "REDIS") return { ...kind, redisShard: "" };
  if (kind.kind !== "sequence" || kind.redis === undefined) return kind;
  return { ...kind, redis: { ...kind.redis, shard: "" } };
}

/** The settings that ids are made of: the same without what may change at any time. */
export function fundamentalsOf(kind: TagKind): TagKind {
  if (kind.kind === "ticket") return kind;
  if (kind.kind === "segment") return { ...kind, min: 1, max: 1, holdForMs: 1, maxAgeMs: 1 };
  const placeless = withoutPlace(kind);
  if (placeless.kind === "snowflake") {
    return { ...placeless, dataCenter: 0, clockPolicy: "REFUSE", clockWaitMs: 0 };
  }
  if (placeless.kind !== "sequence") return placeless;
  const { periods, redis } = placeless;
  return {
    ...placeless,
    periods: periods === undefined ? undefined : { ...periods, keepForMs: 1 },
    redis: redis === undefined ? undefined : { ...redis, step: 1 },
  };
}
