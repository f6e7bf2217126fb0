// A Redis that several tests share: each keeps to names of its own.
import { RedisServer } from "./server.ts";

const SHARED_URL = "IDMINT_TEST_REDIS_URL";

let own: Promise<RedisServer> | undefined;

/**
 * URL of a Redis for tests that neither stop nor empty it: that of IDMINT_TEST_REDIS_URL, which the run's set-up sets when
 * nobody else did; without it, of one started for this process.
 */
export async function sharedRedisUrl(): Promise<string> {
  const shared = process.env[SHARED_URL];
  if (shared !== undefined) return shared;
  own ??= RedisServer.start();
  return (await own).url;
}

/** Makes this process's children share one server; the answer ends it. */
export async function shareRedis(): Promise<() => Promise<void>> {
  if (process.env[SHARED_URL] !== undefined) return async () => undefined;
  const server = await RedisServer.start();
  process.env[SHARED_URL] = server.url;
  return async () => {
    delete process.env[SHARED_URL];
    await server.close();
  };
}
