import { onTestFinished } from "vitest";
import type { RedisSeeded, RedisSequences, SequenceSeedRequest } from "@idmint/core/server";
import { RedisServer, type RedisServerOptions } from "@idmint/testkit/redis";
import { CountingRedisClient } from "../../../src/store/redis/counting-redis.ts";

/** A Redis of the test's own. */
export async function ownRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const redis = await RedisServer.start(options);
  onTestFinished(() => redis.close());
  return redis;
}

/** A connected client of a Redis. */
export async function redisServerAt(
  url: string,
  timeoutMs = 500,
  name = "default",
  storeId: string | (() => string | undefined) = "store-a",
): Promise<CountingRedisClient> {
  const config = { name, url, password: undefined, timeoutMs };
  const redisServer = new CountingRedisClient(
    config,
    typeof storeId === "string" ? () => storeId : storeId,
  );
  onTestFinished(() => redisServer.close());
  if (!(await redisServer.connected(10_000))) throw new Error("no connection to Redis");
  return redisServer;
}

/** The hash of a tag, as an operator sees it. */
export async function hashOf(redis: RedisServer, tag: string): Promise<Record<string, string>> {
  const flat = (await redis.command("HGETALL", `idmint:{${tag}}`)) as string[];
  const hash: Record<string, string> = {};
  for (let at = 0; at < flat.length; at += 2) hash[flat[at]!] = flat[at + 1]!;
  return hash;
}

/** Asks, and seeds because of the answer. */
export async function begin(
  sequences: RedisSequences,
  seed: Omit<SequenceSeedRequest, "doubt">,
): Promise<RedisSeeded> {
  const { tag, generation } = seed;
  const doubt = await sequences.issue({ tag, generation, count: 0, seen: 0n });
  if (doubt.status !== "issued" && doubt.status !== "exhausted") {
    return sequences.seed({ ...seed, doubt });
  }
  return sequences.seed({ ...seed, doubt: { status: "restarted", generation } });
}
