import type { SnowflakeKind, Store, WorkerRegistry } from "@idmint/core";
import type { Config } from "../config/table.ts";
import type { Emit } from "../service/events.ts";
import { boundedRegistry, type RegistryOf, unreachableRegistry } from "../service/registries.ts";
import { SnowflakeTagSource } from "../service/snowflake-source.ts";
import type { MakeSource } from "../service/sources.ts";
import { instanceName } from "./instance.ts";
import type { System } from "./system.ts";

/** What a server does with tags of kind snowflake. */
export interface Snowflakes {
  readonly sourceOf: MakeSource;
  readonly registryOf: RegistryOf;
}

export interface SnowflakesPorts {
  readonly store: Store;
  readonly system: System;
  readonly emit: Emit;
  readonly storeTimeoutMs: number;
  /** The registry of a tag that has it in Redis; undefined where this server has no Redis. */
  readonly registryInRedis: (tag: string, kind: SnowflakeKind) => WorkerRegistry | undefined;
}

export function createSnowflakes(config: Config, ports: SnowflakesPorts): Snowflakes {
  const { store, system, emit, storeTimeoutMs, registryInRedis } = ports;
  const { clock, timers, random, randomToken, wallClock } = system;
  const inStore = boundedRegistry(store, storeTimeoutMs, timers);
  const registryOf: RegistryOf = (tag, kind) =>
    kind.registry === "STORE" ? inStore : (registryInRedis(tag, kind) ?? unreachableRegistry(tag));
  const options = {
    instance: instanceName(config, undefined, randomToken),
    dataCenter: config.snowflakeDataCenter,
    reserveAheadMs: config.snowflakeReserveAheadMs,
    maxWaiters: config.limitWaiters,
  };
  const common = { clock, timers, random, wallClock, onEvent: emit };
  return {
    registryOf,
    sourceOf: (tag) => {
      if (tag.kind.kind !== "snowflake") throw new Error(`tag ${tag.name} is no snowflake`);
      const registry = registryOf(tag.name, tag.kind);
      return new SnowflakeTagSource(tag, options, { ...common, registry });
    },
  };
}
