import { IdmintError, invalidField } from "@idmint/core";
import type { Grant, Refused } from "@idmint/core/server";

export function isMoved(grant: Grant | undefined): boolean {
  return grant?.outcome === "refused" && grant.reason === "TAG_MOVED";
}

export function refusedAsMoved(tag: string): Refused {
  return { outcome: "refused", tag, reason: "TAG_MOVED" };
}

/** All values, or the first failure once all have ended: nobody goes on in the background. */
export async function settledAll<T>(work: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(work);
  const failure = settled.find((one) => one.status === "rejected");
  if (failure !== undefined) throw IdmintError.from(failure.reason);
  return settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
}

export function ofAnotherFleet(): IdmintError {
  return invalidField(
    "store.more_urls",
    "must name databases that belong together: two of them were made for different stores",
  );
}
