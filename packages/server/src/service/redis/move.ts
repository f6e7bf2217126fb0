import {
  assertNoViolations,
  type FieldReason,
  IdmintError,
  invalidField,
  tagNameViolation,
} from "@idmint/core";
import type { AuditNote, CountingRedis, Tag, TagChange, TagStore } from "@idmint/core/server";
import { placedIn } from "@idmint/core/kinds";
import { placeOf } from "./place.ts";

export interface RedisMovePorts {
  readonly store: Pick<TagStore, "updateTag">;
  /** The Redis servers this server is configured with. */
  readonly redisServers: ReadonlyMap<string, CountingRedis>;
}

export interface MoveRequest {
  readonly redisServer: string;
  readonly force: boolean;
  /** Nothing is changed, in the store or in Redis. */
  readonly validateOnly: boolean;
  /** Who moves it, for the audit trail. */
  readonly by?: AuditNote | undefined;
}

/** What is wrong with a request to move, before anything is asked of the store. */
export function assertMovable(
  name: string,
  redisServer: string,
  redisServers: ReadonlyMap<string, CountingRedis>,
): void {
  const known = [...redisServers.keys()].join(", ");
  assertNoViolations(
    tagNameViolation("name", name),
    redisServers.has(redisServer)
      ? undefined
      : {
          field: "redis_server",
          reason: faultOf(redisServer, redisServers),
          description:
            known === ""
              ? "cannot be set here: this server is not configured with redis.urls"
              : `must be one of the Redis servers of this server, which are ${known}`,
        },
  );
}

function faultOf(
  redisServer: string,
  redisServers: ReadonlyMap<string, CountingRedis>,
): FieldReason {
  if (redisServers.size === 0) return "NOT_CONFIGURED";
  return redisServer === "" ? "FIELD_REQUIRED" : "UNKNOWN_VALUE";
}

/**
 * Moves a tag to another Redis server: the old one stops counting, then the row says where it counts, and whoever asks next
 * starts the new one above the floor.
 *
 * INVARIANT: with the old Redis server stopped first, nobody is answered by it after somebody was by the new one, so ids keep
 * their order. A server that is told "moved" reads the row. A Redis server that counts again after it was stopped is always
 * given a new start, so a server that missed a move, or two, cannot go on in the middle of an older one.
 */
export async function moveTag(
  ports: RedisMovePorts,
  tag: Tag,
  { redisServer, force, validateOnly, by }: MoveRequest,
): Promise<Tag> {
  const { name, order, ceiling, kind, revision } = tag;
  const { redisServers, store } = ports;
  const { redisServer: from } = placeOf(tag);
  const settings = { order, ceiling, kind: placedIn(kind, redisServer) };
  const change: TagChange = { settings };
  if (validateOnly) {
    if (from !== redisServer && !force) known(redisServers.get(from), from);
    return store.updateTag(name, change, revision, { validateOnly });
  }
  if (from === redisServer) {
    // What an earlier move that failed may have left behind.
    await forget(redisServers.get(redisServer), name);
    return tag;
  }
  if (!force) await retire(redisServers.get(from), from, name);
  try {
    const moved = await store.updateTag(name, change, revision, { by });
    await forget(redisServers.get(redisServer), name);
    return moved;
  } catch (thrown) {
    // With an unknown outcome the row may say the new Redis server any moment.
    if (!IdmintError.from(thrown).retryable) await forget(redisServers.get(from), name);
    throw thrown;
  }
}

/** Lets a Redis server that was told to stop be started anew at once; without this it is 10 s later. */
async function forget(redisServer: CountingRedis | undefined, tag: string): Promise<void> {
  await redisServer?.forget(tag).catch(() => undefined);
}

function known(old: CountingRedis | undefined, from: string): CountingRedis {
  if (old !== undefined) return old;
  throw invalidField(
    "force",
    `must be set: this server does not know the Redis server "${from}"`,
    "FIELD_REQUIRED",
  );
}

async function retire(old: CountingRedis | undefined, from: string, tag: string): Promise<void> {
  const redisServer = known(old, from);
  const wayOut = "bring it back, or move with force when it is gone for good";
  try {
    await redisServer.retire(tag);
  } catch (cause) {
    // Another store's counter: the refusal names the way out.
    if (IdmintError.from(cause).reason === "STORE_REFUSED") throw cause;
    throw new IdmintError(
      "STORE_UNAVAILABLE",
      `Redis "${from}" cannot be told to stop counting for tag "${tag}": ${wayOut}`,
      { metadata: { tag }, retryAfterMs: 1_000, cause },
    );
  }
}
