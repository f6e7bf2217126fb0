import type { TagKind } from "@idmint/core/kinds";
import { type CountingRedis, type Store, type Tag, tagNotFound } from "@idmint/core/server";
import { within } from "../call.ts";
import type { Emit } from "../events.ts";
import type { System } from "../system.ts";
import type { Raises } from "../upstream/raises.ts";
import type { RedisCounterPorts } from "./counter-ports.ts";
import { RedisMarks } from "./marks.ts";
import { assertMovable, type MoveRequest, moveTag } from "./move.ts";
import { placeOf, type TagPlace } from "./place.ts";
import { preload, type PreloadPorts } from "./preload.ts";
import { placeOnRedisServer } from "./server-choice.ts";
import { RedisWatch } from "./watch.ts";
import { RedisWorkerRegistry } from "./worker-registry.ts";

/** A Redis server that counts. `isLeader` says whether this server watches it. */
export interface ElectedRedis extends CountingRedis {
  readonly isLeader: boolean;
}

/** Where tags count in Redis. */
export interface RedisPlacement {
  /** The Redis server on which a new tag of this name counts; undefined: this server is not configured with redis.urls. */
  readonly redisServerFor: (tag: string) => string | undefined;
  /** Throws INVALID_ARGUMENT for what is wrong with a request to move, before anything is asked of the store. */
  readonly assertMovable: (name: string, redisServer: string) => void;
  /** Moves a tag that counts in Redis to another Redis server; WRONG_KIND for others. */
  readonly move: (tag: Tag, request: MoveRequest) => Promise<Tag>;
}

/** What a server does with tags that count in Redis. */
export interface RedisTags<Counters = unknown> extends RedisPlacement {
  /** Undefined without any Redis. One that is not configured here is refused by whoever counts in it: the tag may move. */
  readonly counters: Counters | undefined;
  /** The registry of a snowflake tag whose workers are in Redis. Undefined without any Redis. */
  readonly registryInRedis: (tag: Tag) => RedisWorkerRegistry | undefined;
  /** Why Redis servers count nothing although they answer, in words. */
  readonly refusals: () => readonly string[];
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

/** `countersOf`: makes what counts the ids of tags, by kind. */
export function createRedisTags<Counters extends Preparable>(
  ports: RedisTagsPorts,
  countersOf: (ports: RedisCounterPorts) => Counters,
  options: { readonly raiseBelowMs: number; readonly raiseByMs: number },
): RedisTags<Counters> {
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
  const counters = countersOf(counterPorts);
  const registryOf = (tag: Tag): RedisWorkerRegistry => new RedisWorkerRegistry(tag, counterPorts);
  const prepared: Preparable = { ...counters, snowflake: registryOf };
  const stopping = new AbortController();
  return {
    redisServerFor: (tag) => placeOnRedisServer(tag, redisServers.keys()),
    assertMovable: (name, redisServer) => assertMovable(name, redisServer, redisServers),
    move: (tag, request) => moveTag({ store, redisServers }, tag, request),
    counters: redisServers.size === 0 ? undefined : counters,
    registryInRedis: (tag) => (redisServers.size === 0 ? undefined : registryOf(tag)),
    refusals: () => refusalsOf(ports.redisServers),
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

function refusalsOf(redisServers: readonly CountingRedis[]): readonly string[] {
  return redisServers.flatMap(({ name, refusal }) =>
    refusal === "" ? [] : [`Redis "${name}": ${refusal}`],
  );
}
