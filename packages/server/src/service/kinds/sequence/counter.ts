import type { Grants } from "../../upstream/grants.ts";
import type { Counter } from "../grouped-source.ts";
import type { RedisCounters, TagOf } from "../kind.ts";

/** What counts a sequence: in the store each round trip is one grant, of exactly the ids that are wanted. */
export function sequenceCounter(
  tag: TagOf<"sequence">,
  grants: Grants,
  redis: RedisCounters | undefined,
): Counter | undefined {
  if (tag.kind.redis !== undefined) return redis?.sequence(tag);
  return {
    commit: (count) =>
      grants.request({ tag: tag.name, kind: "sequence", count, minCount: count, after: 0n }),
  };
}
