import type { TagKind } from "@idmint/core/kinds";
import { type CountingRedis, type Store, type Tag, tagNotFound } from "@idmint/core/server";
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
import { placeOnRedisServer } from "../service/redis/server-choice.ts";
import type { RedisCounterPorts } from "../service/redis/counter-ports.ts";
import { RedisMarks } from "../service/redis/marks.ts";
import { RedisWatch } from "../service/redis/watch.ts";
import { RedisWorkerRegistry } from "../service/redis/worker-registry.ts";
import type { System } from "./system.ts";

/** A Redis server that counts. `isLeader` says whether this server watches it. */
export interface ElectedRedis extends CountingRedis {
  readonly isLeader: boolean;
}

/** What a server does with tags that count in Redis. */
export interface RedisTags extends Pick<Placement, "redisServerFor" | "assertMovable" | "move"> {
  /** Undefined without any Redis. One that is not configured here is refused by whoever counts in it: the tag may move. */
  readonly counters: RedisCounters | undefined;
  /** The registry of a snowflake tag whose workers are in Redis. Undefined without any Redis. */
  readonly registryInRedis: (tag: Tag) => RedisWorkerRegistry | undefined;
  /** Makes every Redis server ready for the tags that count in it, and begins to watch them. */
  start(): void;
  stop(): void;
}

export interface RedisTagsPorts {
  readonly redisServers: readonly ElectedRedis[];
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
  const redisServers = new Map(
    ports.redisServers.map((redisServer) => [redisServer.name, redisServer]),
  );
  const getTags = (names: readonly string[]): Promise<readonly Tag[]> =>
    within(() => store.getTags(names), storeTimeoutMs, timers);
  const readPlace = async (name: string): Promise<TagPlace> => {
    const [tag] = await getTags([name]);
    if (tag === undefined || tag.state === "DELETED") throw tagNotFound(name);
    return placeOf(tag);
  };
  const marks = new RedisMarks({ store, storeTimeoutMs, clock, timers, afterTurn, emit });
  const counterPorts: RedisCounterPorts = {
    redisServer: (name) => redisServers.get(name),
    raises,
    readPlace,
    marks,
    clock,
    timers,
    random,
    wallClock,
    emit,
  };
  const watches = ports.redisServers.map(
    (redisServer) =>
      new RedisWatch(
        { redisServer, isLeader: () => redisServer.isLeader, raises, getTags, clock, timers, emit },
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
    redisServerFor: (tag) => placeOnRedisServer(tag, redisServers.keys()),
    assertMovable: (name, redisServer) => assertMovable(name, redisServer, redisServers),
    move: (tag, request) => moveTag({ store, redisServers }, tag, request),
    counters: redisServers.size === 0 ? undefined : counters,
    registryInRedis: (tag) => (redisServers.size === 0 ? undefined : registryOf(tag)),
    start: () => {
      if (redisServers.size === 0) return;
      marks.start();
      for (const watch of watches) watch.start();
      void preload({
        store,
        counterOf: (tag) => prepared[tag.kind.kind]?.(tag),
        marks,
        hasRedisServer: (name) => redisServers.has(name),
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
