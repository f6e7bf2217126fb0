import { invalidField } from "@idmint/core";
import { RedisAlarmQueue } from "./alarm-queue.ts";
import { Candidate } from "./candidate.ts";
import type { ConnectionConfig } from "./connection.ts";
import { CountingRedisClient } from "./counting-redis.ts";
import { sourceOf } from "./source.ts";
import type { StoreId } from "./store-name.ts";
import { TagSignals } from "./tag-signals.ts";

/** How long a server that starts waits for its Redis servers; then it serves without. */
const CONNECT_MS = 1_000;

/** A Redis server, and whether this server is the one that watches it. */
export class ElectedRedisClient extends CountingRedisClient {
  readonly #candidate: Candidate;

  constructor(config: ConnectionConfig, storeId: () => string | undefined) {
    super(config, storeId);
    this.#candidate = new Candidate(sourceOf(config), "watch", storeId);
  }

  get isLeader(): boolean {
    return this.#candidate.isLeader;
  }

  override async close(): Promise<void> {
    await this.#candidate.close();
    await super.close();
  }
}

export async function openRedisServers(
  configs: readonly ConnectionConfig[],
  storeId: () => string | undefined,
): Promise<readonly ElectedRedisClient[]> {
  const redisServers = configs.map((config) => new ElectedRedisClient(config, storeId));
  await Promise.all(redisServers.map((redisServer) => redisServer.connected(CONNECT_MS)));
  for (const redisServer of redisServers) {
    // One that is not connected yet refuses by itself, as soon as it is.
    const misfit = await redisServer.misfit();
    if (misfit === undefined) continue;
    await Promise.all(redisServers.map((each) => each.close()));
    throw invalidField("redis.urls", `must not name Redis "${redisServer.name}": ${misfit}`);
  }
  return redisServers;
}

export function openTagSignals(config: ConnectionConfig, storeId: StoreId): TagSignals {
  return new TagSignals(sourceOf(config), storeId);
}

export function openAlarmQueue(config: ConnectionConfig, storeId: StoreId): RedisAlarmQueue {
  return new RedisAlarmQueue(sourceOf(config), config.timeoutMs, storeId);
}
