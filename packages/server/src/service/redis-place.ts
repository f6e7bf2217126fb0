import {
  type CountingPlace,
  IdmintError,
  segmentNotReady,
  type Tag,
  type TagKind,
} from "@idmint/core";

/** Where a tag counts and up to where it may, from one reading of its row. */
export interface TagPlace extends CountingPlace {
  readonly floor: bigint;
  readonly epoch: bigint;
}

/** When a newer record of the tag can have been heard of, in milliseconds. */
const RETRY_AFTER_MS = 100;

/** What the tag's row says, unless it is of another epoch than the record that is known here. */
export function presentRow<Row extends { readonly epoch: bigint }>(
  row: Row,
  known: { readonly name: string; readonly epoch: bigint },
): Row {
  if (row.epoch > known.epoch) throw segmentNotReady(known.name, RETRY_AFTER_MS);
  return row;
}

/** WRONG_KIND for a tag that does not count in Redis. */
export function placeOf({ name, kind, generation, floor, epoch }: Tag): TagPlace {
  const shard = shardOfKind(kind);
  if (shard !== undefined) return { shard, generation, floor, epoch };
  throw new IdmintError("WRONG_KIND", `tag "${name}" does not count in Redis`, {
    metadata: { tag: name, kind: kind.kind },
  });
}

/** The Redis shard a kind counts in; undefined: in none. */
export function shardOfKind(kind: TagKind): string | undefined {
  if (kind.kind === "redis_snowflake") return kind.redisShard;
  if (kind.kind === "snowflake") return kind.redisShard;
  return kind.kind === "sequence" ? kind.redis?.shard : undefined;
}

/** The same kind in another shard; unchanged when it counts in none. */
export function placedIn(kind: TagKind, shard: string): TagKind {
  if (kind.kind === "redis_snowflake") return { ...kind, redisShard: shard };
  if (kind.kind === "snowflake" && kind.registry === "REDIS") return { ...kind, redisShard: shard };
  if (kind.kind !== "sequence" || kind.redis === undefined) return kind;
  return { ...kind, redis: { ...kind.redis, shard } };
}
