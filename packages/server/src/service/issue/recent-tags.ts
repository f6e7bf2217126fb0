import { type Clock, IdmintError, type Timers } from "@idmint/core";
import type { TagStore } from "@idmint/core/server";
import { within } from "../call.ts";
import type { Emit } from "../events.ts";
import type { Directory } from "./directory.ts";

/** Most tags that a server makes known to itself, and the longest it takes for that. */
const MAX_RECENT = 1_000;
const RECENT_MS = 2_000;

export interface RecentTagsPorts {
  readonly store: Pick<TagStore, "recentTags">;
  readonly directory: Pick<Directory, "find" | "size">;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly emit: Emit;
}

/**
 * Makes the tags that the fleet used last known to a server that starts, before it is ready, so that their first calls find
 * them.
 *
 * INVARIANTS
 * - No start takes longer than RECENT_MS for it, and none fails for it: what is not known is looked up by its first call.
 * - Nothing is granted. A server that starts again and again uses up no ids, and neither do tags that nobody asks for any more.
 * - Records come by lookups, which leave out what a change has overtaken meanwhile.
 */
export async function knowRecentTags(
  { store, directory, clock, timers, emit }: RecentTagsPorts,
  maxTags: number,
): Promise<void> {
  const start = clock.now();
  const call = { deadline: start + RECENT_MS, signal: new AbortController().signal };
  // Half of the room stays free for what callers ask for.
  const limit = Math.min(MAX_RECENT, Math.ceil(maxTags / 2));
  let error: IdmintError | undefined;
  try {
    const names = await within(() => store.recentTags(limit), RECENT_MS, timers);
    const found = await Promise.allSettled(names.map((name) => directory.find(name, call)));
    const failure = found.find((one) => one.status === "rejected");
    if (failure !== undefined) error = IdmintError.from(failure.reason);
  } catch (thrown) {
    error = IdmintError.from(thrown);
  }
  emit({ type: "tags-known", tags: directory.size, afterMs: clock.now() - start, error });
}
