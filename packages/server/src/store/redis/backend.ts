import { invalidField } from "@idmint/core";
import { RedisAlarmQueue } from "./alarm-queue.ts";
import { Candidate } from "./candidate.ts";
import type { ConnectionConfig } from "./connection.ts";
import { CLUSTER_TEXT } from "./fitness.ts";
import { RedisShardClient } from "./shard.ts";
import { TagSignals } from "./tag-signals.ts";

/** How long a server that starts waits for its Redis shards; then it serves without. */
const CONNECT_MS = 1_000;

/** A Redis shard, and whether this server is the one that watches it. */
export class ElectedShardClient extends RedisShardClient {
  readonly #candidate: Candidate;

  constructor(config: ConnectionConfig) {
    super(config);
    this.#candidate = new Candidate(urlOf(config), "watch");
  }

  get isLeader(): boolean {
    return this.#candidate.isLeader;
  }

  override async close(): Promise<void> {
    await this.#candidate.close();
    await super.close();
  }
}

export async function openRedisShards(
  configs: readonly ConnectionConfig[],
): Promise<readonly ElectedShardClient[]> {
  const shards = configs.map((config) => new ElectedShardClient(config));
  await Promise.all(shards.map((shard) => shard.connected(CONNECT_MS)));
  for (const shard of shards) {
    // One that is not connected yet refuses by itself, as soon as it is.
    if ((await shard.fitness)?.isCluster !== true) continue;
    await Promise.all(shards.map((each) => each.close()));
    throw invalidField("redis.urls", `must not name Redis "${shard.name}": ${CLUSTER_TEXT}`);
  }
  return shards;
}

export function openTagSignals(config: ConnectionConfig): TagSignals {
  return new TagSignals(urlOf(config));
}

export function openAlarmQueue(config: ConnectionConfig): RedisAlarmQueue {
  return new RedisAlarmQueue(urlOf(config), config.timeoutMs);
}

/** Holds the password, so it is never shown. */
function urlOf({ url, password }: ConnectionConfig): string {
  const whole = new URL(url);
  if (password !== undefined) whole.password = encodeURIComponent(password);
  return whole.href;
}
