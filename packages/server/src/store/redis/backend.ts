import type { ConnectionConfig } from "./connection.ts";
import { ShardLeader } from "./leader.ts";
import { RedisShardClient } from "./shard.ts";

/** How long a server that starts waits for its Redis shards; then it serves without. */
const CONNECT_MS = 1_000;

/** A Redis shard, and whether this server is the one that watches it. */
export class ElectedShardClient extends RedisShardClient {
  readonly #leader: ShardLeader;

  constructor(config: ConnectionConfig) {
    super(config);
    const url = new URL(config.url);
    if (config.password !== undefined) url.password = encodeURIComponent(config.password);
    this.#leader = new ShardLeader(url.href);
  }

  get isLeader(): boolean {
    return this.#leader.isLeader;
  }

  override async close(): Promise<void> {
    await this.#leader.close();
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
