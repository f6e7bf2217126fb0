import {
  assertNoViolations,
  IdmintError,
  invalidField,
  type RedisShard,
  type Tag,
  type TagChange,
  tagNameViolation,
  type TagStore,
} from "@idmint/core";
import { placedIn } from "@idmint/core/kinds";
import { placeOf } from "./place.ts";

export interface RedisMovePorts {
  readonly store: Pick<TagStore, "updateTag">;
  /** The shards this server is configured with. */
  readonly shards: ReadonlyMap<string, RedisShard>;
}

export interface MoveRequest {
  readonly shard: string;
  readonly force: boolean;
  /** Nothing is changed, in the store or in Redis. */
  readonly validateOnly: boolean;
}

/** What is wrong with a request to move, before anything is asked of the store. */
export function assertMovable(
  name: string,
  shard: string,
  shards: ReadonlyMap<string, RedisShard>,
): void {
  const known = [...shards.keys()].join(", ");
  assertNoViolations(
    tagNameViolation("name", name),
    shards.has(shard)
      ? undefined
      : {
          field: "shard",
          reason: shard === "" ? "FIELD_REQUIRED" : "UNKNOWN_VALUE",
          description:
            known === ""
              ? "cannot be set: this server has no Redis shards; set redis.urls"
              : `must be one of the Redis shards of this server, which are ${known}`,
        },
  );
}

/**
 * Moves a tag to another Redis shard: the old one stops counting, then the row says where it counts, and whoever asks next
 * starts the new one above the floor.
 *
 * INVARIANT: with the old shard stopped first, nobody is answered by it after somebody was by the new one, so ids keep
 * their order. A server that is told "moved" reads the row. A shard that counts again after it was stopped is always
 * given a new start, so a server that missed a move, or two, cannot go on in the middle of an older one.
 */
export async function moveTag(
  ports: RedisMovePorts,
  tag: Tag,
  { shard, force, validateOnly }: MoveRequest,
): Promise<Tag> {
  const { name, order, ceiling, kind, revision } = tag;
  const { shards, store } = ports;
  const { shard: from } = placeOf(tag);
  const settings = { order, ceiling, kind: placedIn(kind, shard) };
  const change: TagChange = { settings };
  if (validateOnly) {
    if (from !== shard && !force) known(shards.get(from), from);
    return store.updateTag(name, change, revision, { validateOnly });
  }
  if (from === shard) {
    // What an earlier move that failed may have left behind.
    await forget(shards.get(shard), name);
    return tag;
  }
  if (!force) await retire(shards.get(from), from, name);
  try {
    const moved = await store.updateTag(name, change, revision);
    await forget(shards.get(shard), name);
    return moved;
  } catch (thrown) {
    // With an unknown outcome the row may say the new shard any moment.
    if (!IdmintError.from(thrown).retryable) await forget(shards.get(from), name);
    throw thrown;
  }
}

/** Lets a shard that was told to stop be started anew at once; without this it is 10 s later. */
async function forget(shard: RedisShard | undefined, tag: string): Promise<void> {
  await shard?.forget(tag).catch(() => undefined);
}

function known(old: RedisShard | undefined, from: string): RedisShard {
  if (old !== undefined) return old;
  throw invalidField(
    "force",
    `must be set: this server does not know the shard "${from}"`,
    "FIELD_REQUIRED",
  );
}

async function retire(old: RedisShard | undefined, from: string, tag: string): Promise<void> {
  const shard = known(old, from);
  const wayOut = "bring it back, or move with force when it is gone for good";
  try {
    await shard.retire(tag);
  } catch (cause) {
    throw new IdmintError(
      "STORE_UNAVAILABLE",
      `Redis "${from}" cannot be told to stop counting for tag "${tag}": ${wayOut}`,
      { metadata: { tag }, retryAfterMs: 1_000, cause },
    );
  }
}
