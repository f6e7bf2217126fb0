import type { ResponseOf } from "../../../api/json.ts";

export type Entry = ResponseOf<"TagService", "listLedgerEntries">["entries"][number];

/** A server, or a client of one, and the newest segment that it was given. */
export interface Holder {
  /** Tells it from all others. */
  readonly key: string;
  readonly isClient: boolean;
  readonly entry: Entry;
}

const GRANT = "LEDGER_ENTRY_KIND_GRANT";
const ALLOCATION = "LEDGER_ENTRY_KIND_ALLOCATION";

/**
 * Who was given segments of a tag, each with the newest one, newest first. Of what was given back nothing is held: a server or
 * client that gave the newest one back as a whole holds none.
 */
export function holdersOf(entries: readonly Entry[]): readonly Holder[] {
  const newest = new Map<string, Holder>();
  for (const entry of entries) {
    const isClient = entry.kind === ALLOCATION;
    if (!isClient && entry.kind !== GRANT) continue;
    const key = isClient ? `${entry.nodeId}\n${entry.instance}\n${entry.principal}` : entry.nodeId;
    const known = newest.get(key);
    if (known === undefined || isNewer(entry, known.entry))
      newest.set(key, { key, isClient, entry });
  }
  return [...newest.values()]
    .filter(({ entry }) => !entries.some((other) => takesBack(other, entry)))
    .toSorted((a, b) => (isNewer(a.entry, b.entry) ? -1 : 1));
}

/** The order of rows about the same ids, as the API says it. */
function isNewer(one: Entry, other: Entry): boolean {
  const [a, b] = [BigInt(one.version), BigInt(other.version)];
  return a === b ? BigInt(one.sequence) > BigInt(other.sequence) : a > b;
}

function takesBack(other: Entry, { firstId, kind, nodeId, lastId }: Entry): boolean {
  const what = kind === GRANT ? "LEDGER_ENTRY_KIND_GIVE_BACK" : "LEDGER_ENTRY_KIND_RELEASE";
  if (other.kind !== what || other.nodeId !== nodeId) return false;
  return BigInt(other.firstId) <= BigInt(firstId) && BigInt(other.lastId) >= BigInt(lastId);
}

/** How many ids an entry is about. */
export function countOf({ firstId, lastId }: Pick<Entry, "firstId" | "lastId">): string {
  return String(BigInt(lastId) - BigInt(firstId) + 1n);
}
