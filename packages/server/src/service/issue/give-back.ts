import { type Clock, IdmintError, lastOf, type Timers, type Unused } from "@idmint/core";
import { type GiveBackRequest, type GiveBackStore, MAX_BATCH } from "@idmint/core/server";
import { within } from "../call.ts";
import type { Emit } from "../events.ts";

/** Longest that a server with many tags gives back; each call of it takes up to the time of any call. */
export const GIVE_BACK_MS = 10_000;

/** What a buffer remembers of each grant, to give its unused end back. */
export interface Receipt {
  /** The version the grant was answered with. */
  readonly version: bigint;
  /** Last id of the grant: where the floor was then. */
  readonly last: bigint;
}

/**
 * The one range of a tag that can be given back: what was never issued at the end of the newest grant, together with
 * what lies right below it (the current segment's rest, when the next one was granted without another server between).
 * Undefined when the newest grant's end was issued, or nothing is left.
 *
 * INVARIANT: every id from `from` to `to` was granted to this server and never issued: the range is grown downwards only
 * over unused segments that touch it. The store checks that the floor is still `to` and the version still that of the
 * newest grant, so that nothing above was granted to anybody.
 */
export function rangeToGiveBack(
  tag: string,
  unused: readonly Unused<Receipt>[],
): GiveBackRequest | undefined {
  let newest: Receipt | undefined;
  for (const { receipt } of unused) {
    if (newest === undefined || receipt.version > newest.version) newest = receipt;
  }
  if (newest === undefined) return undefined;
  const segments = unused
    .flatMap((load) => load.segments)
    .filter((segment) => segment.increment === 1)
    .toSorted((a, b) => (a.base > b.base ? -1 : 1));
  let from: bigint = newest.last + 1n;
  for (const segment of segments) {
    if (lastOf(segment) === from - 1n) from = segment.base;
  }
  if (from > newest.last) return undefined;
  return { tag, from, to: newest.last, version: newest.version };
}

export interface GiveBackPorts {
  readonly store: GiveBackStore;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly emit: Emit;
}

/**
 * Gives ranges back, in calls as large as the port allows, the widest ranges first. Answers how many ids went back.
 *
 * INVARIANT: each range is in one call, and each call is tried once: after an unknown outcome it may have been done, and the
 * rest is a gap. A call that fails is the last one, and so is the one after which `GIVE_BACK_MS` are over, since a server that
 * stops waits for this.
 */
export async function giveBackAll(
  requests: readonly GiveBackRequest[],
  { store, clock, timers, emit }: GiveBackPorts,
  storeTimeoutMs: number,
): Promise<number> {
  const widest = requests.toSorted((a, b) => width(b) - width(a));
  const endAt = clock.now() + GIVE_BACK_MS;
  let givenBack = 0;
  for (let at = 0; at < widest.length && clock.now() < endAt; at += MAX_BATCH) {
    const batch = widest.slice(at, at + MAX_BATCH);
    try {
      // failpoint: giving-back
      // One after the other: a store that does not answer is asked once.
      const counts = await within(() => store.giveBack(batch), storeTimeoutMs, timers);
      // failpoint: given-back
      givenBack += counts.reduce((sum, count) => sum + count, 0);
    } catch (thrown) {
      emit({ type: "give-back-failed", error: IdmintError.from(thrown) });
      break;
    }
  }
  return givenBack;
}

function width({ from, to }: GiveBackRequest): number {
  return Number(to - from);
}
