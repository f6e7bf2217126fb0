import { createHash } from "node:crypto";

/**
 * The Redis server a new tag counts in: the one with the highest hash of its name and the tag. So servers agree without
 * asking each other, tags spread evenly, and a further one takes its share from all others. Recorded with the tag: later
 * changes of the configuration move nothing.
 */
export function placeOnRedisServer(
  tag: string,
  redisServers: Iterable<string>,
): string | undefined {
  let best: string | undefined;
  let highest = "";
  for (const redisServer of redisServers) {
    const hash = createHash("sha256").update(`${redisServer}\0${tag}`).digest("hex");
    if (best !== undefined && hash <= highest) continue;
    highest = hash;
    best = redisServer;
  }
  return best;
}
