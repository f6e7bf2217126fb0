import { type RedisShard, type Store, type Tag, type TagKind, tagNotFound } from "@idmint/core";
import { within } from "../service/call.ts";
import type { Emit } from "../service/events.ts";
import { RedisSnowflakeCounter } from "../service/kinds/redis-snowflake/counter.ts";
import { RedisSequenceCounter } from "../service/kinds/sequence/redis-counter.ts";
import type { RedisCounters } from "../service/kinds/kind.ts";
import type { Placement } from "../service/tags/placement.ts";
import type { Raises } from "../service/upstream/raises.ts";
import { preload, type PreloadPorts } from "../service/redis/preload.ts";
import { assertMovable, moveTag } from "../service/redis/move.ts";
import { placeOf, type TagPlace } from "../service/redis/place.ts";
import { placeOnShard } from "../service/redis/shard-choice.ts";
import type { RedisCounterPorts } from "../service/redis/counter-ports.ts";
import { RedisMarks } from "../service/redis/marks.ts";
import { RedisWatch } from "../service/redis/watch.ts";
import { RedisWorkerRegistry } from "../service/redis/worker-registry.ts";
import type { System } from "./system.ts";

/** A shard. `isLeader` says whether this server watches it. */
export interface ElectedShard extends RedisShard {
  readonly isLeader: boolean;
}

/** What a server does with tags that count in Redis. */
export interface RedisTags extends Pick<Placement, "redisShardFor" | "assertMovable" | "move"> {
  /** Undefined without any Redis. A shard that is not configured here is refused by whoever counts in it: the tag may move. */
  readonly counters: RedisCounters | undefined;
  /** The registry of a snowflake tag whose workers are in Redis. Undefined without any Redis. */
  readonly registryInRedis: (tag: Tag) => RedisWorkerRegistry | undefined;
  /** Makes every shard ready for the tags that count in it, and begins to watch them. */
  start(): void;
  stop(): void;
}

export interface RedisTagsPorts {
  readonly shards: readonly ElectedShard[];
  readonly store: Store;
  readonly raises: Raises;
  readonly system: System;
  readonly emit: Emit;
  readonly storeTimeoutMs: number;
}

/** What is made ready for the tags of each kind before their first calls. */
type Preparable = Readonly<Partial<Record<TagKind["kind"], PreloadPorts["counterOf"]>>>;

export function createRedisTags(
  ports: RedisTagsPorts,
  options: { readonly raiseBelowMs: number; readonly raiseByMs: number },
): RedisTags {
  const { store, raises, system, emit, storeTimeoutMs } = ports;
  const { clock, timers, random, wallClock, afterTurn } = system;
  const shards = new Map(ports.shards.map((shard) => [shard.name, shard]));
  const getTags = (names: readonly string[]): Promise<readonly Tag[]> =>
    within(() => store.getTags(names), storeTimeoutMs, timers);
  const readPlace = async (name: string): Promise<TagPlace> => {
    const [tag] = await getTags([name]);
    if (tag === undefined || tag.state === "DELETED") throw tagNotFound(name);
    return placeOf(tag);
  };
  const marks = new RedisMarks({ store, storeTimeoutMs, clock, timers, afterTurn, emit });
  const counterPorts: RedisCounterPorts = {
    shard: (name) => shards.get(name),
    raises,
    readPlace,
    marks,
    clock,
    timers,
    random,
    wallClock,
    emit,
  };
  const watches = ports.shards.map(
    (shard) =>
      new RedisWatch(
        { shard, isLeader: () => shard.isLeader, raises, getTags, clock, timers, emit },
        options,
      ),
  );
  const counters = {
    sequence: (tag: Tag) => new RedisSequenceCounter(tag, counterPorts),
    redis_snowflake: (tag: Tag) => new RedisSnowflakeCounter(tag, counterPorts),
  };
  const registryOf = (tag: Tag): RedisWorkerRegistry => new RedisWorkerRegistry(tag, counterPorts);
  const prepared: Preparable = { ...counters, snowflake: registryOf };
  const stopping = new AbortController();
  return {
    redisShardFor: (tag) => placeOnShard(tag, shards.keys()),
    assertMovable: (name, shard) => assertMovable(name, shard, shards),
    move: (tag, request) => moveTag({ store, shards }, tag, request),
    counters: shards.size === 0 ? undefined : counters,
    registryInRedis: (tag) => (shards.size === 0 ? undefined : registryOf(tag)),
    start: () => {
      if (shards.size === 0) return;
      marks.start();
      for (const watch of watches) watch.start();
      void preload({
        store,
        counterOf: (tag) => prepared[tag.kind.kind]?.(tag),
        marks,
        hasShard: (name) => shards.has(name),
        timers,
        storeTimeoutMs,
        signal: stopping.signal,
        emit,
      });
    },
    stop: () => {
      stopping.abort();
      marks.stop();
      for (const watch of watches) watch.stop();
    },
  };
}
