import type * as Backend from "./redis/backend.ts";
import type { RedisAlarmQueue } from "./redis/alarm-queue.ts";
import type { ElectedRedisClient } from "./redis/backend.ts";
import type { ConnectionConfig } from "./redis/connection.ts";
import type { RedisStanding } from "./redis/standing.ts";
import type { TagSignals } from "./redis/tag-signals.ts";

export type { RedisStanding } from "./redis/standing.ts";
export type { ConnectionConfig as RedisServerConfig } from "./redis/connection.ts";
export type { TagSignals } from "./redis/tag-signals.ts";

/** Loaded where Redis is configured: the driver takes some of the memory of an idle server. */
const backend = (): Promise<typeof Backend> => import("./redis/backend.ts");

/**
 * Connects to all Redis servers of a configuration. One that is down keeps nobody from using the others. `storeId`: the id
 * of the store whose tags count there; undefined before it was heard. Close them.
 */
export async function openRedisServers(
  configs: readonly ConnectionConfig[],
  storeId: () => string | undefined,
): Promise<readonly ElectedRedisClient[]> {
  return configs.length === 0 ? [] : (await backend()).openRedisServers(configs, storeId);
}

/** Looks at a Redis without changing it, for `boundMs` at most. */
export async function redisStanding(
  config: ConnectionConfig,
  boundMs: number,
): Promise<RedisStanding> {
  return (await import("./redis/standing.ts")).redisStanding(config, boundMs);
}

/** What servers of one store tell each other through one of the Redis servers. Close it. */
export async function openTagSignals(
  config: ConnectionConfig,
  storeId: () => string | undefined,
): Promise<TagSignals> {
  return (await backend()).openTagSignals(config, storeId);
}

/** The alarms of all servers of one store, in one of the Redis servers. Close it. */
export async function openAlarmQueue(
  config: ConnectionConfig,
  storeId: () => string | undefined,
): Promise<RedisAlarmQueue> {
  return (await backend()).openAlarmQueue(config, storeId);
}
