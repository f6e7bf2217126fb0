import type { TagKind } from "@idmint/core/kinds";
import type { TagContext } from "../tag-context.ts";
import type { KindIds, MakeKindIds, TagWish } from "./id-source.ts";
import { objectIds } from "./object-id.ts";
import { ServedIds } from "./served-ids.ts";
import { snowflakeIds } from "./snowflake.ts";
import { uuids } from "./uuid.ts";

/**
 * Where the ids of each kind come from when servers hand out no segments of a tag. The compiler names the kind that is
 * missing here.
 */
const SOURCES: { readonly [Name in TagKind["kind"]]: MakeKindIds } = {
  // Its ids are written by a format or a key, which only servers do.
  segment: served,
  sequence: served,
  redis_snowflake: served,
  ticket: served,
  snowflake: (wish, context) =>
    wish.facts.isText ? served(wish, context) : snowflakeIds(wish, context),
  uuid: uuids,
  object_id: objectIds,
};

/**
 * The source of ids of a tag that servers hand out no segments of. Rejects when it needs a worker id and cannot get one.
 * Undefined when nobody wants it any more. Kinds and settings that this SDK does not know are made by the servers.
 */
export async function kindIdsFor(wish: TagWish, context: TagContext): Promise<KindIds | undefined> {
  const { kind } = wish.facts;
  const make = Object.hasOwn(SOURCES, kind) ? SOURCES[kind as TagKind["kind"]] : served;
  const made = await make(wish, context);
  return made === "unknown" ? served(wish, context) : made;
}

function served(wish: TagWish, context: TagContext): KindIds {
  return new ServedIds(wish, context);
}
