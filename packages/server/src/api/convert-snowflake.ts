import {
  type ClockPolicy as PolicyName,
  durationOf,
  endOf,
  idsPerSecond,
  type SnowflakeKind as DomainSnowflake,
} from "@idmint/core";
import { ClockPolicy, type SnowflakeKind, WorkerRegistry } from "@idmint/proto";
import type { LayoutDraft, SnowflakeDraft } from "../service/kinds/snowflake.ts";
import { wholeMillisecondsOf } from "./duration.ts";

const POLICIES: ReadonlyMap<number, PolicyName | undefined> = new Map([
  [ClockPolicy.UNSPECIFIED, undefined],
  [ClockPolicy.REFUSE, "REFUSE" as const],
  [ClockPolicy.EXTENSION, "EXTENSION" as const],
  [ClockPolicy.BACKUP_WORKER, "BACKUP_WORKER" as const],
]);

const REGISTRIES: ReadonlyMap<number, DomainSnowflake["registry"] | undefined> = new Map([
  [WorkerRegistry.UNSPECIFIED, undefined],
  [WorkerRegistry.STORE, "STORE" as const],
  [WorkerRegistry.REDIS, "REDIS" as const],
]);

/** The settings of a snowflake tag as callers see them. */
export function snowflakeOf(kind: DomainSnowflake): SnowflakeKind {
  const { layout, dataCenter, clockPolicy, clockWaitMs, registry, redisShard } = kind;
  const { timeUnitMs, timeOriginMs, ...bits } = layout;
  return {
    layout: { timeUnit: durationOf(timeUnitMs), timeOrigin: new Date(timeOriginMs), ...bits },
    dataCenter,
    clockPolicy: ClockPolicy[clockPolicy],
    clockWait: durationOf(clockWaitMs),
    registry: WorkerRegistry[registry],
    allowShortLife: false,
    endTime: new Date(endOf(layout)),
    idsPerSecond: BigInt(idsPerSecond(layout)),
    redisShard: redisShard ?? "",
  };
}

/** The settings of a snowflake tag as a caller wrote them; nothing is checked yet. */
export function snowflakeDraftOf(value: SnowflakeKind): SnowflakeDraft {
  const { layout, dataCenter, clockPolicy, clockWait, registry, allowShortLife } = value;
  return {
    kind: "snowflake",
    layout: layout === undefined ? undefined : layoutOf(layout),
    dataCenter,
    clockPolicy: POLICIES.has(clockPolicy) ? POLICIES.get(clockPolicy) : "UNKNOWN",
    clockWaitMs: wholeMillisecondsOf(clockWait),
    registry: REGISTRIES.has(registry) ? REGISTRIES.get(registry) : "UNKNOWN",
    allowShortLife,
    redisShard: undefined,
  };
}

function layoutOf(layout: NonNullable<SnowflakeKind["layout"]>): LayoutDraft {
  const { timeUnit, timeOrigin, ...bits } = layout;
  return {
    ...bits,
    timeUnitMs: wholeMillisecondsOf(timeUnit),
    timeOriginMs: timeOrigin?.getTime(),
  };
}

/** Fields that only the server may set: which, whether it is set, and what to do instead. */
export function outputOnlyOfSnowflake(
  kind: SnowflakeKind,
): readonly [field: string, isSet: boolean, wayOut: string][] {
  const { endTime, idsPerSecond: rate, redisShard } = kind;
  return [
    ["tag.snowflake.end_time", endTime !== undefined, "; it follows from the layout"],
    ["tag.snowflake.ids_per_second", rate !== 0n, "; it follows from the layout"],
    [
      "tag.snowflake.redis_shard",
      redisShard !== "",
      "; tags are spread over the shards, and MoveTag moves one",
    ],
  ];
}
