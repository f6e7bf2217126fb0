import { KEPT_RESERVE_AHEAD_MS, type Store, type Tag } from "@idmint/core/server";
import type { Config } from "../config/table.ts";
import type { Emit } from "../service/events.ts";
import {
  boundedCalls,
  guardedRegistry,
  unreachableRegistry,
} from "../service/worker-ids/registries.ts";
import { SnowflakeTagSource, type TagRegistry } from "../service/kinds/snowflake/source.ts";
import type { SourceOf } from "../service/kinds/kind.ts";
import type { Clocks } from "./clocks.ts";
import { instanceName } from "./instance.ts";
import type { System } from "./system.ts";

export interface SnowflakesPorts {
  readonly store: Store;
  readonly system: System;
  readonly emit: Emit;
  readonly storeTimeoutMs: number;
  /** The store went back for a tag. */
  readonly onWentBack: (tag: string, detail: string) => void;
  /** The registry of a tag whose workers are in Redis. Undefined when this server has no Redis. */
  readonly registryInRedis: (tag: Tag) => TagRegistry | undefined;
  readonly clocks: Clocks;
}

/** Makes the sources of tags of kind snowflake. */
export function createSnowflakes(config: Config, ports: SnowflakesPorts): SourceOf<"snowflake"> {
  const { store, system, emit, storeTimeoutMs, onWentBack, registryInRedis } = ports;
  const { clock, timers, random, randomToken, wallClock } = system;
  const inStore = guardedRegistry(boundedCalls(store, storeTimeoutMs, timers), onWentBack);
  const registryOf = (tag: Tag): TagRegistry => {
    if (tag.kind.kind === "snowflake" && tag.kind.registry === "STORE") return inStore;
    return registryInRedis(tag) ?? unreachableRegistry(tag.name);
  };
  const { keeper, watch: judge } = ports.clocks;
  const { snowflakeReserveAheadMs: reserveAheadMs } = config;
  const options = {
    instance: instanceName(config, undefined, randomToken),
    dataCenter: config.snowflakeDataCenter,
    reserveAheadMs,
    registryAheadMs: keeper === undefined ? reserveAheadMs : KEPT_RESERVE_AHEAD_MS,
    maxWaiters: config.limitWaiters,
  };
  const common = { clock, timers, random, wallClock, judge, onEvent: emit };
  return (tag) => {
    const registry = registryOf(tag);
    const kept = keeper?.registryOf(tag, registry);
    return new SnowflakeTagSource(tag, options, { ...common, registry, keeper: kept });
  };
}
