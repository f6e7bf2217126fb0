import type * as Backend from "./redis/backend.ts";
import type { RedisAlarmQueue } from "./redis/alarm-queue.ts";
import type { ElectedShardClient } from "./redis/backend.ts";
import type { ConnectionConfig } from "./redis/connection.ts";
import type { TagSignals } from "./redis/tag-signals.ts";

export type { ConnectionConfig as RedisShardConfig } from "./redis/connection.ts";
export type { TagSignals } from "./redis/tag-signals.ts";

/** Loaded where Redis is configured: the driver takes some of the memory of an idle server. */
const backend = (): Promise<typeof Backend> => import("./redis/backend.ts");

/** Connects to all shards of a configuration. One that is down keeps nobody from serving what counts elsewhere. Close them. */
export async function openRedisShards(
  configs: readonly ConnectionConfig[],
): Promise<readonly ElectedShardClient[]> {
  return configs.length === 0 ? [] : (await backend()).openRedisShards(configs);
}

/** What servers tell each other through one of the shards. Close it. */
export async function openTagSignals(config: ConnectionConfig): Promise<TagSignals> {
  return (await backend()).openTagSignals(config);
}

/** The alarms of all servers, in one of the shards. Close it. */
export async function openAlarmQueue(config: ConnectionConfig): Promise<RedisAlarmQueue> {
  return (await backend()).openAlarmQueue(config);
}
