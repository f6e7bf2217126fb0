// Servers that count in real Redis servers, over a store in memory.
import { type Clock, IdmintError, type Random, type Timers } from "@idmint/core";
import { type CountingRedis, type TagSettings, VersionGuard } from "@idmint/core/server";
import type { MemoryStore } from "@idmint/testkit";
import type { RedisServer } from "@idmint/testkit/redis";
import { expect } from "vitest";
import { realSystem } from "../../../src/main/system.ts";
import type { Emit, ServerEvent } from "../../../src/service/events.ts";
import type { Counter } from "../../../src/service/kinds/grouped-source.ts";
import { RedisSnowflakeCounter } from "../../../src/service/kinds/redis-snowflake.ts";
import { RedisSequenceCounter } from "../../../src/service/kinds/sequence/redis-counter.ts";
import { RedisMarks } from "../../../src/service/redis/marks.ts";
import { placeOf, type TagPlace } from "../../../src/service/redis/place.ts";
import { RedisWorkerRegistry } from "../../../src/service/redis/worker-registry.ts";
import { Raises } from "../../../src/service/upstream/raises.ts";
import { redisServerAt } from "../../store/redis/support.ts";
import { tagOf } from "./redis-tags.ts";

interface ServerOn {
  readonly redisServers: ReadonlyMap<string, CountingRedis>;
  readonly heard: ServerEvent[];
  readonly raises: Raises;
  readonly marks: RedisMarks;
  readonly sequence: (settings: TagSettings) => RedisSequenceCounter;
  readonly snowflake: (settings: TagSettings) => RedisSnowflakeCounter;
  readonly registry: (settings: TagSettings) => RedisWorkerRegistry;
}

/** What counting in Redis needs of one server. */
interface CountingPorts {
  readonly redisServer: (name: string) => CountingRedis | undefined;
  readonly raises: Raises;
  readonly readPlace: (name: string) => Promise<TagPlace>;
  readonly marks: RedisMarks;
  readonly emit: Emit;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly wallClock: () => number;
}

/** The same over a store and Redis servers, by their names. Fails when the store is found to have gone back. */
export function countingPorts(
  store: MemoryStore,
  redisServers: ReadonlyMap<string, CountingRedis>,
  emit: Emit = () => undefined,
): CountingPorts {
  const { clock, timers, random, wallClock, afterTurn } = realSystem;
  const raises = new Raises({
    store,
    guard: new VersionGuard(),
    timers,
    storeTimeoutMs: 2_000,
    history: () => 0,
    onWentBack: (_, detail) => expect.fail(detail),
    onBelow: (tag) => expect.fail(tag),
  });
  return {
    redisServer: (name) => redisServers.get(name),
    raises,
    readPlace: async (name) => placeOf((await store.getTags([name]))[0]!),
    marks: new RedisMarks({ store, storeTimeoutMs: 2_000, clock, timers, afterTurn, emit }),
    emit,
    clock,
    timers,
    random,
    wallClock,
  };
}

/** What one server has of the world. */
export async function serverOn(
  store: MemoryStore,
  redis: Readonly<Record<string, RedisServer>>,
): Promise<ServerOn> {
  const redisServers = new Map<string, CountingRedis>();
  for (const [name, { url }] of Object.entries(redis))
    redisServers.set(name, await redisServerAt(url, 500, name));
  const heard: ServerEvent[] = [];
  const ports = countingPorts(store, redisServers, (event) => void heard.push(event));
  const { raises, marks } = ports;
  return {
    redisServers,
    heard,
    raises,
    marks,
    sequence: (settings: TagSettings) => new RedisSequenceCounter(tagOf(settings), ports),
    snowflake: (settings: TagSettings) => new RedisSnowflakeCounter(tagOf(settings), ports),
    registry: (settings: TagSettings) => new RedisWorkerRegistry(tagOf(settings), ports),
  };
}

/** Asks until it is answered, within the time in which Redis must be of use again. */
export async function commitSoon(
  counter: Counter,
  count: number,
  withinMs = 5_000,
): Promise<bigint> {
  const end = performance.now() + withinMs;
  for (;;) {
    try {
      return (await counter.commit(count)).base;
    } catch (thrown) {
      const error = IdmintError.from(thrown);
      if (!error.retryable || performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
