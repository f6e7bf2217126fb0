// The settings of a tag's kind, in words and as JSON.
import {
  PeriodUnit,
  periodUnitToJSON,
  type RedisSnowflakeKind,
  type SegmentKind,
  type SequenceKind,
  SequenceBackend,
  sequenceBackendToJSON,
  type Tag,
} from "@idmint/proto";
import { durationText } from "./parse.ts";
import { plain } from "./table.ts";

type ProtoDuration = NonNullable<SegmentKind["holdFor"]>;
type Rows = readonly (readonly [name: string, value: string])[];

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
      return snowflakeRows(kind.value);
    case "ticket":
      return [
        ["start", String(kind.value.start)],
        ["slots", String(kind.value.slots)],
      ];
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

function snowflakeRows({ shard, timeOrigin, endTime, redisShard }: RedisSnowflakeKind): Rows {
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
    case "segment":
    case undefined:
      return "-";
    default:
      return kind satisfies never;
  }
}

/** The settings as proto3 JSON, with every field present. */
export function kindJson(kind: Tag["kind"]): object {
  switch (kind?.$case) {
    case undefined:
      return {};
    case "segment": {
      const { start, min, max, holdFor, maxAge } = kind.value;
      const times = { holdFor: durationJson(holdFor), maxAge: durationJson(maxAge) };
      return { segment: { start: String(start), min, max, ...times } };
    }
    case "sequence": {
      const { start, period, keepFor, backend, ...rest } = kind.value;
      return {
        sequence: {
          start: String(start),
          period: periodUnitToJSON(period),
          keepFor: durationJson(keepFor),
          backend: sequenceBackendToJSON(backend),
          ...rest,
        },
      };
    }
    case "redisSnowflake": {
      const { timeOrigin, endTime, ...rest } = kind.value;
      return {
        redisSnowflake: {
          ...rest,
          timeOrigin: timeOrigin?.toISOString() ?? null,
          endTime: endTime?.toISOString() ?? null,
        },
      };
    }
    case "ticket":
      return { ticket: { start: String(kind.value.start), slots: kind.value.slots } };
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

function protoDurationText(value: ProtoDuration | undefined): string {
  if (value === undefined) return "unknown";
  return durationText(Number(value.seconds) * 1_000 + Math.round(value.nanos / 1e6));
}

function durationJson(value: ProtoDuration | undefined): string | null {
  if (value === undefined) return null;
  // As proto3 JSON has it: 0, 3, 6 or 9 digits, as few as state it exactly.
  const nanos = String(value.nanos)
    .padStart(9, "0")
    .replace(/(?:000){1,3}$/, "");
  const fraction = nanos === "" ? "" : `.${nanos}`;
  return `${value.seconds}${fraction}s`;
}
