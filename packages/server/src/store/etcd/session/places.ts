// The places of changes among all changes, as a poll reads them.
import type { KeyValue } from "../cluster/protocol.ts";
import { Keys } from "./keys.ts";
import { namesFrom } from "./rows.ts";

/** Most packs of one page; with the one in which it begins they have as many places as a poll asks for. */
export const MAX_PACKS = 3;

/** A tag and the revision of one of its changes. */
export interface Place {
  readonly tag: string;
  readonly revision: bigint;
  /** It may have changed since, and has a place of its own then. */
  readonly isPacked: boolean;
}

/** What was read after a revision: at most one key more than is wanted of each. */
export interface Read {
  readonly since: bigint;
  readonly limit: number;
  readonly changes: readonly KeyValue[];
  readonly packs: readonly KeyValue[];
}

/**
 * A page of places, oldest first.
 *
 * INVARIANT: no place is passed over. Where not all keys of one sort were read, places of the other sort that come after the last one
 * that was are left to the next page.
 */
export function placesOf({ since, limit, changes, packs }: Read): {
  readonly places: readonly Place[];
  readonly more: boolean;
} {
  const single = changes.slice(0, limit);
  const packed = packs.slice(0, MAX_PACKS);
  const isCut = single.length < changes.length || packed.length < packs.length;
  const ends = [
    ...(single.length < changes.length ? [single] : []),
    ...(packed.length < packs.length ? [packed] : []),
  ].map((kvs) => Keys.revisionOf(kvs.at(-1) as KeyValue));
  const known = [...packed.flatMap(placesOfPack), ...single.map(placeOf)]
    .filter(({ revision }) => revision > since && ends.every((end) => revision <= end))
    .toSorted((a, b) => (a.revision < b.revision ? -1 : 1));
  return { places: known.slice(0, limit), more: isCut || known.length > limit };
}

function placeOf(kv: KeyValue): Place {
  return { tag: kv.value.toString(), revision: Keys.revisionOf(kv), isPacked: false };
}

function placesOfPack(kv: KeyValue): readonly Place[] {
  const names = namesFrom(kv.value);
  const first = Keys.revisionOf(kv) - BigInt(names.length - 1);
  return names.map((tag, at) => ({ tag, revision: first + BigInt(at), isPacked: true }));
}
