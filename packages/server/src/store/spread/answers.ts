import { IdmintError, invalidField } from "@idmint/core";
import {
  type Grant,
  namesOn,
  type Refused,
  type Tag,
  type TagPage,
  upTo,
} from "@idmint/core/server";

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

/** The first tags of all databases. */
export function mergedPage(pages: readonly TagPage[], limit: number): TagPage {
  // While a tag arrives it is in two of them.
  const byName = new Map<string, Tag>();
  for (const tag of pages.flatMap(({ tags }) => tags)) {
    const other = byName.get(tag.name);
    if (other === undefined || tag.version > other.version) byName.set(tag.name, tag);
  }
  const page = {
    tags: [...byName.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    unreadable: pages
      .flatMap(({ unreadable }) => unreadable)
      .toSorted((a, b) => (a.tag < b.tag ? -1 : 1)),
  };
  return upTo(page, namesOn(page)[limit - 1]);
}
