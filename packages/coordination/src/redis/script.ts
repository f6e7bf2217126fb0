import { createHash } from "node:crypto";
import type { Redis } from "ioredis";

/** A Lua script: sent whole once to each server, by its hash afterwards. */
export interface Script {
  readonly lua: string;
  readonly sha: string;
}

/**
 * Defines a script. Write keys as KEYS and values as ARGV; answer numbers as strings, since Lua's numbers are doubles; on
 * an unmet condition answer, do not raise.
 */
export function defineScript(lua: string): Script {
  return { lua, sha: createHash("sha1").update(lua).digest("hex") };
}

/** Runs a script. NOSCRIPT means that nothing was run, so sending the whole script then repeats nothing. */
export async function runScript(
  redis: Redis,
  { lua, sha }: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await redis.evalsha(sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
    return redis.eval(lua, keys.length, ...keys, ...args);
  }
}
