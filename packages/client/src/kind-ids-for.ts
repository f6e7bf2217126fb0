import type { KindFacts, KindIds } from "./kind-ids.ts";
import { LeasedIds } from "./leased.ts";
import { LeaseCalls } from "./leases.ts";
import { MadeIds } from "./made.ts";
import { ServerIds } from "./server-ids.ts";
import type { TagContext } from "./tag-context.ts";

interface Wish {
  readonly tag: string;
  readonly facts: KindFacts;
  /** The order in which the tag prefers the endpoints. */
  readonly preference: readonly number[];
  /** Called when the tag may have other settings now. */
  readonly onDoubt: () => void;
  /** Asked after a wait. */
  readonly isWanted: () => boolean;
}

/**
 * The source of ids of a tag that servers hand out no segments of. Rejects when it needs a worker id and cannot get one.
 * Undefined when nobody wants it any more.
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
