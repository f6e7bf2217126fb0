// The settings of a tag's kind, in words and as JSON.
import {
  dceDomainToJSON,
  type ObjectIdVariant,
  objectIdVariantToJSON,
  PeriodUnit,
  periodUnitToJSON,
  type RedisSnowflakeKind,
  type SegmentKind,
  type SequenceKind,
  SequenceBackend,
  type Tag,
  type UuidKind,
} from "@idmint/proto";
import { protoDurationText } from "./proto-duration.ts";
import { snowflakeRows, snowflakeSummary } from "./snowflake-text.ts";
import { plain, type Rows } from "./table.ts";

/** The settings as rows. */
export function kindRows({ kind, period }: Tag): Rows {
  switch (kind?.$case) {
    case undefined:
      return [];
    case "segment":
      return segmentRows(kind.value);
    case "sequence":
      return sequenceRows(kind.value, period);
    case "redisSnowflake":
      return redisSnowflakeRows(kind.value);
    case "snowflake":
      return snowflakeRows(kind.value);
    case "ticket":
      return [
        ["start", String(kind.value.start)],
        ["slots", String(kind.value.slots)],
      ];
    case "uuid":
      return uuidRows(kind.value);
    case "objectId":
      return [["variant", variantWord(kind.value.variant)]];
    default:
      return kind satisfies never;
  }
}

function segmentRows({ start, min, max, holdFor, maxAge }: SegmentKind): Rows {
  return [
    ["start", String(start)],
    ["min", String(min)],
    ["max", String(max)],
    ["hold for", protoDurationText(holdFor)],
    ["max age", protoDurationText(maxAge)],
  ];
}

function sequenceRows(sequence: SequenceKind, present: string): Rows {
  const { start, period, timeZone, keepFor, backend, step, shard } = sequence;
  const isInRedis = backend === SequenceBackend.REDIS;
  const rows: (readonly [string, string])[] = [
    ["start", String(start)],
    ["backend", isInRedis ? "redis" : "store"],
  ];
  if (isInRedis) rows.push(["step", String(step)], ["redis shard", plain(shard)]);
  if (period === PeriodUnit.UNSPECIFIED) return rows;
  rows.push(
    ["period", unitWord(period)],
    ["time zone", plain(timeZone)],
    ["keep for", protoDurationText(keepFor)],
    ["present period", present === "" ? "none yet" : plain(present)],
  );
  return rows;
}

function uuidRows({ version, namespace, domain, number }: UuidKind): Rows {
  const rows: (readonly [string, string])[] = [["uuid version", String(version)]];
  if (namespace !== "") rows.push(["namespace", plain(namespace)]);
  if (version === 2) {
    const word = dceDomainToJSON(domain).replace("DCE_DOMAIN_", "").toLowerCase();
    rows.push(["domain", word], ["number", String(number)]);
  }
  return rows;
}

/** A variant as it is typed after --variant. */
function variantWord(variant: ObjectIdVariant): string {
  const word = objectIdVariantToJSON(variant).replace("OBJECT_ID_VARIANT_", "");
  return word.toLowerCase().replaceAll("_", "-");
}

function redisSnowflakeRows({ shard, timeOrigin, endTime, redisShard }: RedisSnowflakeKind): Rows {
  return [
    ["shard", String(shard)],
    ["time origin", timeText(timeOrigin)],
    ["ends at", timeText(endTime)],
    ["redis shard", plain(redisShard)],
  ];
}

/** What tells tags of a kind apart, in one word for a table. */
export function kindSummary({ kind }: Tag): string {
  switch (kind?.$case) {
    case "sequence": {
      const { period, timeZone, backend, shard } = kind.value;
      if (backend === SequenceBackend.REDIS) return `redis:${plain(shard)}`;
      return period === PeriodUnit.UNSPECIFIED ? "-" : `${unitWord(period)}:${plain(timeZone)}`;
    }
    case "redisSnowflake":
      return `shard:${kind.value.shard}`;
    case "ticket":
      return `slots:${kind.value.slots}`;
    case "snowflake":
      return snowflakeSummary(kind.value);
    case "uuid":
      return `version:${kind.value.version}`;
    case "objectId":
      return variantWord(kind.value.variant);
    case "segment":
    case undefined:
      return "-";
    default:
      return kind satisfies never;
  }
}

/** A time as ISO 8601 in UTC. */
export function timeText(time: Date | undefined): string {
  return time === undefined ? "unknown" : time.toISOString();
}

/** A unit as it is typed after --period. */
function unitWord(unit: PeriodUnit): string {
  return periodUnitToJSON(unit).replace("PERIOD_UNIT_", "").toLowerCase();
}
