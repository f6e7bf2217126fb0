// Faults that no test can notice, and why.

/** Faults of one line that change nothing that anybody could notice. */
interface Explained {
  /** The line in which they begin, without the space around it. */
  readonly line: string;
  /** Default: whatever stands in the line. */
  readonly was?: string;
  readonly becomes?: string;
  readonly why: string;
}

const core = "packages/core/src";
const store = "packages/server/src/store";
const TYPES = "It is there for the types, which do not know that there always is one.";
const DISTINCT = "No two of them are equal.";

export const explained: Readonly<Record<string, readonly Explained[]>> = {
  [`${core}/server/access/rights.ts`]: [
    {
      line: "return (this.#names.get(name) ?? 0) | this.under(name);",
      was: "this.#names.get(name) ?? 0",
      why: "To the operator | undefined is 0; the types do not know that.",
    },
    {
      line: "else this.#names.set(tags, (this.#names.get(tags) ?? 0) | bits);",
      was: "this.#names.get(tags) ?? 0",
      why: "To the operator | undefined is 0; the types do not know that.",
    },
  ],
  [`${core}/segment/cursor.ts`]: [
    {
      line: "return state.increment === 1",
      becomes: "false",
      why: "The other way computes the same id, and takes longer.",
    },
    {
      line: "return state.increment === 1",
      becomes: "0",
      why: "The other way computes the same id, and takes longer.",
    },
    { line: "return a.base < b.base ? -1 : 1;", becomes: "a.base <= b.base", why: DISTINCT },
    { line: "const count = state.loads[0]?.count ?? 0;", was: "state.loads[0]?.count", why: TYPES },
    {
      line: "const count = state.loads[0]?.count ?? 0;",
      was: "state.loads[0]?.count ?? 0",
      why: TYPES,
    },
    {
      line: "if (state.loads[0]?.expiresAt !== Infinity) {",
      becomes: "state.loads[0].expiresAt",
      why: TYPES,
    },
    { line: "return undefined;", why: "A function that ends answers undefined." },
    {
      line: 'if (segment === undefined) throw new Error("the cursor ran past what is held");',
      was: 'throw new Error("the cursor ran past what is held");',
      why: "Nothing gets there: as many ids are ready as are taken.",
    },
    {
      line: "return state.loads.length > 1 && state.loads[state.loads.length - 1]?.grant !== undefined;",
      was: "state.loads[state.loads.length - 1]?.grant",
      why: TYPES,
    },
    {
      line: 'if (segment === undefined) throw new Error("the cursor ran past what is held");',
      becomes: "false",
      why: "Nothing gets there: as many ids are ready as are taken.",
    },
  ],
  [`${store}/etcd/cluster/guard-state.ts`]: [
    {
      line: "return a > b ? a : b;",
      becomes: "a >= b",
      why: "Of two that are equal either is it.",
    },
    { line: "revision: 0n,", why: "Revisions of etcd begin at 1." },
    { line: "term: 0n,", why: "Raft's terms begin at 1." },
    {
      line: "lead: 0n,",
      why: "No cluster has an empty id, so before the first record nothing is compared with it.",
    },
  ],
  [`${store}/shared/period.ts`]: [
    { line: "export const MAX_FORGOTTEN = 100;", why: "Any number does: the next grant goes on." },
    {
      line: "return others.toSorted((a, b) => (a.start < b.start ? 1 : -1));",
      becomes: "a.start <= b.start",
      why: DISTINCT,
    },
    {
      line: "return { start: other.start, lastId: lastId < ceiling ? lastId : ceiling };",
      becomes: "lastId <= ceiling",
      why: "Of two that are equal either is it.",
    },
    {
      line: 'loaded ??= (createRequire(import.meta.url)("temporal-polyfill") as typeof polyfill).Temporal;',
      becomes:
        'loaded = (createRequire(import.meta.url)("temporal-polyfill") as typeof polyfill).Temporal',
      why: "It is loaded once more, from Node's own cache.",
    },
  ],
  ["packages/server/src/service/upstream/lookup-state.ts"]: [
    {
      line: "if (until !== undefined) {",
      becomes: "true",
      why: "No time is before undefined, and what is not there cannot be deleted.",
    },
    { line: "if (oldest !== undefined) state.absent.delete(oldest);", becomes: "true", why: TYPES },
  ],
  [`${core}/server/store/version-guard.ts`]: [
    {
      line: "known.others = others.length === 0 ? undefined : others;",
      becomes: "false",
      why: "An empty list says the same, and takes memory.",
    },
    {
      line: "else this.#of(tag).earlier ??= version;",
      becomes: "this.#of(tag).earlier = version",
      why: "A history is entered before it can become an earlier one, so there is none yet.",
    },
    {
      line: "const isRepeat = seenWhenSent === 0n && version <= (earlier?.version ?? 0n);",
      becomes: "earlier?.version",
      why: "No grant has the version 0, and nothing is at most undefined.",
    },
    {
      line: "known.seen = before === undefined || version > before.version ? { version, epoch } : before;",
      becomes: "version >= before.version",
      why: "Each change of the epoch raises the version, so within a history equal versions are of one epoch.",
    },
  ],
};
