import { createHash } from "node:crypto";
import type { Redis } from "ioredis";

/** A Lua script: sent whole once on each connection, by its hash afterwards. */
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

/** Hashes of the scripts that were sent on a connection. */
const sent = new WeakMap<object, Set<string>>();

/**
 * Runs a script: the first time on a connection by its text, later by its hash. A connection's commands stay in order, so
 * the hash finds the script; asking by hash first would let other commands overtake the text that is sent after NOSCRIPT.
 * NOSCRIPT comes only when somebody emptied the cache of scripts. Nothing was run then, and the text is sent if `isWanted`.
 */
export async function runScript(
  redis: Redis,
  { lua, sha }: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
  isWanted: () => boolean = () => true,
): Promise<unknown> {
  const onConnection = sent.get(redis.stream) ?? new Set();
  sent.set(redis.stream, onConnection);
  const isKnown = onConnection.has(sha);
  onConnection.add(sha);
  if (!isKnown) return redis.eval(lua, keys.length, ...keys, ...args);
  try {
    return await redis.evalsha(sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
    if (!isWanted()) throw error;
    return redis.eval(lua, keys.length, ...keys, ...args);
  }
}
