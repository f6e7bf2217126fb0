import type { KindFacts, KindIds } from "./kind-ids.ts";
import { LeasedIds } from "./leased.ts";
import { LeaseCalls } from "./leases.ts";
import { MadeIds } from "./made.ts";
import { ServerIds } from "./server-ids.ts";
import type { TagContext } from "./tag.ts";

interface Wish {
  readonly tag: string;
  readonly facts: KindFacts;
  /** The order in which the tag prefers the endpoints. */
  readonly preference: readonly number[];
  /** Told when the tag may have become another one. */
  readonly onDoubt: () => void;
  /** Asked after a wait. */
  readonly isWanted: () => boolean;
}

/**
 * Where the ids of a tag of which servers hand out no segments come from. Rejects when it needs a worker id and none is to
 * be had; undefined when nobody wants it any more by then.
 */
export async function kindIdsFor(
  { tag, facts, preference, onDoubt, isWanted }: Wish,
  context: TagContext,
): Promise<KindIds | undefined> {
  if (facts.made !== undefined) return new MadeIds(tag, facts.made, context.clock);
  if (facts.kind !== "snowflake" || facts.isText) {
    return new ServerIds({ tag, facts, preference, onDoubt }, context);
  }
  const leases = new LeaseCalls(context.endpoints, preference);
  const kind = await leases.begin({ tag, ...context.worker });
  if (isWanted()) return new LeasedIds({ tag, kind, leases, onDoubt }, context);
  // It ends by itself when this does not arrive.
  await leases.abandon(tag).catch(() => undefined);
  return undefined;
}
