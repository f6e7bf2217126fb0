import type { CountingRedis } from "@idmint/core/server";
import { notConfigured } from "../call.ts";

/** The Redis server that a tag counts in; NOT_CONFIGURED when this server does not know it. */
export function redisServerNamed(
  redisServers: (name: string) => CountingRedis | undefined,
  tag: string,
  name: string,
): CountingRedis {
  const redisServer = redisServers(name);
  if (redisServer !== undefined) return redisServer;
  throw notConfigured(
    tag,
    `counts in Redis "${name}", which this server is not configured with: add it to redis.urls, the same on all servers`,
  );
}
