import { lastOf, type Unused } from "@idmint/core";
import type { GiveBackRequest } from "@idmint/core/server";

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
