import { RedisAlarmQueue } from "./alarm-queue.ts";
import { Candidate } from "./candidate.ts";
import type { ConnectionConfig } from "./connection.ts";
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
