import type { TagKind } from "@idmint/core/kinds";
import type { TagContext } from "../tag-context.ts";
import type { IdSource, MakeIdSource, IdSourceRequest } from "./id-source.ts";
import { objectIds } from "./object-id.ts";
import { ServedIds } from "./served-ids.ts";
import { snowflakeIds } from "./snowflake.ts";
import { uuids } from "./uuid.ts";

/**
 * Where the ids of each kind come from when servers hand out no segments of a tag. The compiler names the kind that is
 * missing here.
 */
const SOURCES: { readonly [Name in TagKind["kind"]]: MakeIdSource } = {
  // Its ids are written by a format or a key, which only servers do.
  segment: served,
  sequence: served,
  redis_snowflake: served,
  ticket: served,
  snowflake: (request, context) =>
    request.facts.isText ? served(request, context) : snowflakeIds(request, context),
  uuid: uuids,
  object_id: objectIds,
};

/**
 * The source of ids of a tag that servers hand out no segments of. Rejects when it needs a worker id and cannot get one.
 * Undefined when nobody wants it any more. Kinds and settings that this SDK does not know are made by the servers.
 */
export async function idSourceFor(
  request: IdSourceRequest,
  context: TagContext,
): Promise<IdSource | undefined> {
  const { kind } = request.facts;
  const make = Object.hasOwn(SOURCES, kind) ? SOURCES[kind as TagKind["kind"]] : served;
  const source = await make(request, context);
  return source === "unknown" ? served(request, context) : source;
}

function served(request: IdSourceRequest, context: TagContext): IdSource {
  return new ServedIds(request, context);
}
