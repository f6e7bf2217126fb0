import { IdmintError, invalidField } from "@idmint/core";
import {
  type GrantedIds,
  type Refused,
  storeWentBack,
  tagNotFound,
  tagPaused,
} from "@idmint/core/server";

/** Is told that the store went back, for a tag or, without one, as a whole. */
export type OnWentBack = (tag: string | undefined, detail: string) => void;

/** Is told of ids that are not used, since some of them were granted to this server before the store was accepted. */
export type OnBelow = (tag: string, ids: GrantedIds) => void;

/** What a refusal of the store is to callers. */
export function refusalOf(
  { tag, reason, detail, ofStore = false }: Refused,
  onWentBack: OnWentBack,
): IdmintError {
  if (reason === "SCHEMA_MISMATCH") {
    return new IdmintError(reason, detail ?? `the row of tag "${tag}" cannot be read`, {
      metadata: { tag },
    });
  }
  if (reason !== "STORE_EPOCH_CHANGED") return REFUSALS[reason](tag);
  const why = detail ?? "the store is not the accepted one";
  onWentBack(ofStore ? undefined : tag, why);
  return storeWentBack(why, tag);
}

/** Every id up to the ceiling may have been issued. */
export function tagExhausted(tag: string): IdmintError {
  return new IdmintError(
    "TAG_EXHAUSTED",
    `tag "${tag}" does not have that many ids left below its ceiling, which cannot change; create another tag`,
    { metadata: { tag } },
  );
}

/** An operator stopped all servers. `sinceMs`: since when, milliseconds since 1970. */
export function issuingStopped(sinceMs: number): IdmintError {
  const since = new Date(sinceMs).toISOString();
  return new IdmintError(
    "ISSUING_STOPPED",
    `an operator stopped issuing on all servers at ${since}; it is resumed with: idmint resume-issuing --all`,
    { metadata: { stopped_since: since } },
  );
}

/** The tag changes its database; it goes on as soon as it has arrived. */
function tagMoves(tag: string): IdmintError {
  return new IdmintError(
    "STORE_UNAVAILABLE",
    `tag "${tag}" is being moved to another database; if the move hangs, finish it with: idmint store spread move ${tag}`,
    { metadata: { tag }, retryAfterMs: 100 },
  );
}

const REFUSALS: Record<
  Exclude<Refused["reason"], "SCHEMA_MISMATCH" | "STORE_EPOCH_CHANGED">,
  (tag: string) => IdmintError
> = {
  TAG_NOT_FOUND: tagNotFound,
  TAG_PAUSED: tagPaused,
  TAG_MOVED: tagMoves,
  TAG_EXHAUSTED: tagExhausted,
  AFTER_ABOVE_FLOOR: () =>
    invalidField(
      "after",
      "is above every id that was ever granted for this tag",
      "VALUE_OUT_OF_RANGE",
    ),
  // The kind that is asked for is that of the newest record seen.
  WRONG_KIND: (tag) =>
    new IdmintError(
      "WRONG_KIND",
      `tag "${tag}" was deleted and created again as another kind; this server will know within a second`,
      { metadata: { tag } },
    ),
};
