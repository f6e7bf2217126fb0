import { namesSentinels, sentinelOptions } from "@idmint/coordination";
import type { RedisOptions } from "ioredis";

/** Where a Redis is, and how to get in. */
export interface RedisPlace {
  readonly url: string;
  readonly password: string | undefined;
  readonly sentinelUser?: string | undefined;
  readonly sentinelPassword?: string | undefined;
}

/** Leads to the Redis. Holds passwords, so it is never shown. */
export function sourceOf({ url, ...secrets }: RedisPlace): string | RedisOptions {
  if (namesSentinels(url)) return sentinelOptions(url, secrets);
  const whole = new URL(url);
  if (secrets.password !== undefined) whole.password = encodeURIComponent(secrets.password);
  return whole.href;
}
