import {
  durationOf,
  lifeEndMs,
  type PeriodUnit as UnitName,
  type SequenceKind as DomainSequence,
  type TagKind,
  type UuidKind as DomainUuid,
} from "@idmint/core";
import {
  DceDomain,
  ObjectIdVariant,
  PeriodUnit,
  SequenceBackend,
  type SequenceKind,
  type Tag,
  type UuidKind,
} from "@idmint/proto";
import type { KindDraft } from "../service/kinds/draft.ts";
import type { SequenceDraft } from "../service/kinds/sequence.ts";
import { uuidDraftOf } from "../service/kinds/uuid.ts";
import { outputOnlyOfSnowflake, snowflakeDraftOf, snowflakeOf } from "./convert-snowflake.ts";
import { wholeMillisecondsOf } from "./duration.ts";

type Kind = NonNullable<Tag["kind"]>;

const UNITS: ReadonlyMap<number, UnitName | undefined> = new Map([
  [PeriodUnit.UNSPECIFIED, undefined],
  [PeriodUnit.DAY, "DAY" as const],
  [PeriodUnit.WEEK, "WEEK" as const],
  [PeriodUnit.MONTH, "MONTH" as const],
  [PeriodUnit.YEAR, "YEAR" as const],
]);

const BACKENDS: ReadonlyMap<number, "STORE" | "REDIS" | undefined> = new Map([
  [SequenceBackend.UNSPECIFIED, undefined],
  [SequenceBackend.STORE, "STORE" as const],
  [SequenceBackend.REDIS, "REDIS" as const],
]);

const DOMAINS: ReadonlyMap<number, "PERSON" | "GROUP" | "ORG" | undefined> = new Map([
  [DceDomain.UNSPECIFIED, undefined],
  [DceDomain.PERSON, "PERSON" as const],
  [DceDomain.GROUP, "GROUP" as const],
  [DceDomain.ORG, "ORG" as const],
]);

const VARIANTS: ReadonlyMap<number, "CLASSIC" | "MACHINE_PROCESS" | undefined> = new Map([
  [ObjectIdVariant.UNSPECIFIED, undefined],
  [ObjectIdVariant.CLASSIC, "CLASSIC" as const],
  [ObjectIdVariant.MACHINE_PROCESS, "MACHINE_PROCESS" as const],
]);

/** The settings of a kind as callers see them. */
export function kindOf(kind: TagKind): Kind {
  switch (kind.kind) {
    case "segment": {
      const { start, min, max, holdForMs, maxAgeMs } = kind;
      const [holdFor, maxAge] = [durationOf(holdForMs), durationOf(maxAgeMs)];
      return { $case: "segment", value: { start, min, max, holdFor, maxAge } };
    }
    case "sequence":
      return { $case: "sequence", value: sequenceOf(kind) };
    case "redis_snowflake": {
      const { shard, timeOriginMs, redisShard } = kind;
      const timeOrigin = new Date(timeOriginMs);
      const endTime = new Date(lifeEndMs(timeOriginMs));
      return { $case: "redisSnowflake", value: { shard, timeOrigin, endTime, redisShard } };
    }
    case "ticket":
      return { $case: "ticket", value: { start: kind.start, slots: kind.slots } };
    case "snowflake":
      return { $case: "snowflake", value: snowflakeOf(kind) };
    case "uuid":
      return { $case: "uuid", value: uuidOf(kind) };
    case "object_id":
      return { $case: "objectId", value: { variant: ObjectIdVariant[kind.variant] } };
    default:
      return kind satisfies never;
  }
}

function uuidOf(kind: DomainUuid): UuidKind {
  const { domain, number, ...others } = uuidDraftOf(kind);
  const named = domain === undefined || domain === "UNKNOWN" ? "UNSPECIFIED" : domain;
  const { version, namespace } = others;
  return { version, namespace, domain: DceDomain[named], number };
}

function sequenceOf({ start, periods, redis }: DomainSequence): SequenceKind {
  return {
    start,
    period: PeriodUnit[periods?.unit ?? "UNSPECIFIED"],
    timeZone: periods?.timeZone ?? "",
    keepFor: periods === undefined ? undefined : durationOf(periods.keepForMs),
    backend: redis === undefined ? SequenceBackend.STORE : SequenceBackend.REDIS,
    step: redis?.step ?? 0,
    shard: redis?.shard ?? "",
  };
}

/** The settings of a kind as a caller wrote them; nothing is checked yet. */
export function kindDraftOf(kind: Kind): KindDraft {
  switch (kind.$case) {
    case "segment": {
      const { start, min, max, holdFor, maxAge } = kind.value;
      const holdForMs = wholeMillisecondsOf(holdFor);
      return { kind: "segment", start, min, max, holdForMs, maxAgeMs: wholeMillisecondsOf(maxAge) };
    }
    case "sequence":
      return sequenceDraftOf(kind.value);
    case "redisSnowflake": {
      const { shard, timeOrigin } = kind.value;
      const timeOriginMs = timeOrigin?.getTime();
      return { kind: "redis_snowflake", shard, timeOriginMs, redisShard: undefined };
    }
    case "ticket": {
      const { start, slots } = kind.value;
      return { kind: "ticket", start, slots, slotsId: undefined };
    }
    case "snowflake":
      return snowflakeDraftOf(kind.value);
    case "uuid": {
      const { version, namespace, domain, number } = kind.value;
      const named = DOMAINS.has(domain) ? DOMAINS.get(domain) : "UNKNOWN";
      return { kind: "uuid", version, namespace, domain: named, number };
    }
    case "objectId": {
      const { variant } = kind.value;
      const named = VARIANTS.has(variant) ? VARIANTS.get(variant) : "UNKNOWN";
      return { kind: "object_id", variant: named };
    }
    default:
      return kind satisfies never;
  }
}

function sequenceDraftOf(value: SequenceKind): SequenceDraft {
  const { start, period, timeZone, keepFor, backend, step } = value;
  return {
    kind: "sequence",
    start,
    period: UNITS.has(period) ? UNITS.get(period) : "UNKNOWN",
    timeZone,
    keepForMs: wholeMillisecondsOf(keepFor),
    backend: BACKENDS.has(backend) ? BACKENDS.get(backend) : "UNKNOWN",
    step,
    shard: undefined,
  };
}

/** Fields of a kind that only the server may set: which, whether it is set, and what to do instead. */
export function outputOnlyOfKind(
  kind: Kind | undefined,
): readonly [field: string, isSet: boolean, wayOut: string][] {
  const move = "; tags are spread over the shards, and MoveTag moves one";
  if (kind?.$case === "sequence") return [["tag.sequence.shard", kind.value.shard !== "", move]];
  if (kind?.$case === "snowflake") return outputOnlyOfSnowflake(kind.value);
  if (kind?.$case !== "redisSnowflake") return [];
  const { redisShard, endTime } = kind.value;
  return [
    ["tag.redis_snowflake.redis_shard", redisShard !== "", move],
    ["tag.redis_snowflake.end_time", endTime !== undefined, "; it follows from time_origin"],
  ];
}
