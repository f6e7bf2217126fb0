import { createHash } from "node:crypto";

/**
 * The shard a new tag counts in: the one with the highest hash of shard and tag, so that servers agree without asking
 * each other, tags spread evenly, and a further shard takes its share from all others. Recorded with the tag: later
 * changes of the configuration move nothing.
 */
export function placeOnShard(tag: string, shards: Iterable<string>): string | undefined {
  let best: string | undefined;
  let highest = "";
  for (const shard of shards) {
    const hash = createHash("sha256").update(`${shard}\0${tag}`).digest("hex");
    if (best !== undefined && hash <= highest) continue;
    highest = hash;
    best = shard;
  }
  return best;
}
