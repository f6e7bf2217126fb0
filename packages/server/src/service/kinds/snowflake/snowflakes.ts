import { createMadeTimes, type MadeSnowflakes } from "@idmint/core";
import { KEPT_RESERVE_AHEAD_MS, type Store, type Tag } from "@idmint/core/server";
import type { Emit } from "../../events.ts";
import type { System } from "../../system.ts";
import type { OnWentBack } from "../../upstream/refusals.ts";
import type { Clocks } from "../../worker-ids/clocks.ts";
import { boundedCalls, guardedRegistry, unreachableRegistry } from "../../worker-ids/registries.ts";
import type { SourceOf, TagOf } from "../kind.ts";
import { type SnowflakeSourceOptions, SnowflakeTagSource, type TagRegistry } from "./source.ts";

export interface SnowflakesPorts {
  readonly store: Store;
  readonly system: System;
  readonly emit: Emit;
  readonly storeTimeoutMs: number;
  /** The store went back for a tag. */
  readonly onWentBack: OnWentBack;
  /** The registry of a tag whose workers are in Redis. Undefined when this server has no Redis. */
  readonly registryInRedis: (tag: Tag) => TagRegistry | undefined;
  readonly clocks: Clocks;
}

/** Makes the sources of tags of kind snowflake. */
export function createSnowflakes(
  settings: Omit<SnowflakeSourceOptions, "registryAheadMs">,
  ports: SnowflakesPorts,
): SourceOf<"snowflake"> {
  const { store, system, emit, storeTimeoutMs, onWentBack, registryInRedis } = ports;
  const { clock, timers, random, wallClock } = system;
  const inStore = guardedRegistry(boundedCalls(store, storeTimeoutMs, timers), onWentBack);
  const registryOf = (tag: TagOf<"snowflake">): TagRegistry => {
    if (tag.kind.registry === "STORE") return inStore;
    return registryInRedis(tag) ?? unreachableRegistry(tag.name);
  };
  const { keeper, watch: judge } = ports.clocks;
  const registryAheadMs = keeper === undefined ? settings.reserveAheadMs : KEPT_RESERVE_AHEAD_MS;
  const options = { ...settings, registryAheadMs };
  const common = { clock, timers, random, wallClock, judge, onEvent: emit };
  // A tag that this server lets go of, and works with again, still has all the ids that were made here.
  const made: MadeSnowflakes = createMadeTimes();
  return (tag) => {
    const registry = registryOf(tag);
    const kept = keeper?.registryOf(tag, registry);
    return new SnowflakeTagSource(tag, options, { ...common, registry, keeper: kept, made });
  };
}
