/** The key `store`: which cluster was accepted. Written by a migration and by accepts only. */
export interface StoreRecord {
  readonly storeId: string;
  readonly incarnation: string;
  /** Rises with every accept, above any that a lost history may have had. */
  readonly generation: bigint;
  /** etcd's cluster id. */
  readonly clusterId: string;
  /** How far Raft's index was ahead of the revision, at least. */
  readonly lead: bigint;
  /** Set while an accept is under way: nothing is granted until it is over. */
  readonly accepting?: string;
}

/** What a member said of its cluster after a linearizable read. */
export interface Sight {
  readonly clusterId: string;
  /** Of the read. */
  readonly revision: bigint;
  readonly term: bigint;
  /** Raft's index less the revision of the read. The index was asked for later. */
  readonly lead: bigint;
}

/** The highest that this process saw in one history. */
interface Seen {
  readonly generation: bigint;
  readonly revision: bigint;
  readonly term: bigint;
  /** Why this history is not granted from any more; empty: it is. */
  readonly fenced: string;
}

const NOTHING: Seen = { generation: -1n, revision: 0n, term: 0n, fenced: "" };

/**
 * Tells whether the cluster is the one that was accepted, or went back.
 *
 * 1. Its cluster id. A restored snapshot gets another one, unless the operator gave it the old token and the old members.
 * 2. Its lead: Raft's index less etcd's revision. An entry of Raft's log raises the index by one and the revision by at
 *    most one, so within one log the lead never falls. A snapshot that is restored keeps its revision and begins a new log
 *    at nearly nothing, so the lead falls by about all revisions that there ever were; `--bump-revision` makes it fall
 *    further. So a process that never saw the store before knows such a restore too.
 * 3. Raft's term against the highest recorded (the key `term`) and the highest that this process saw.
 * 4. The revision against the highest that this process saw.
 *
 * INVARIANTS
 * - No false alarm: every number is compared with one of an earlier moment, of a linearizable read. Terms that are
 *   remembered are those of a leader that was elected (see `isElected`); whoever answered a linearizable read after that
 *   has that term at least.
 * - What was found stays until somebody accepts, that is, until the generation is a higher one: more writes would hide it.
 */
export class GuardState {
  #seen: Seen = NOTHING;

  /** The highest revision seen so far. To be asked when a request is sent. */
  get revision(): bigint {
    return this.#seen.revision;
  }

  /** Takes note of what a member said. Answers why nothing may be granted, or an empty text. */
  judge(
    record: StoreRecord | undefined,
    recordedTerm: bigint,
    sight: Sight,
    sentAtRevision: bigint,
  ): string {
    if (record === undefined) return "the store has lost its identity";
    if (record.generation < this.#seen.generation) return SEEN_LATER;
    const isNew = record.generation > this.#seen.generation;
    if (isNew) this.#seen = { ...NOTHING, generation: record.generation };
    const sentAt = isNew ? 0n : sentAtRevision;
    this.#note(sight.revision, this.#verdict(record, recordedTerm, sight, sentAt));
    if (this.#seen.fenced !== "" || record.accepting === undefined) return this.#seen.fenced;
    return "an accept of the store was begun and is not over; run it again if it was interrupted";
  }

  /** Takes note of the header of an answer, whose store was judged before. */
  checkHeader(record: StoreRecord, clusterId: string, revision: bigint, sentAt: bigint): string {
    // Meanwhile somebody accepted: the answer is judged by its own comparisons alone.
    if (record.generation !== this.#seen.generation) return "";
    const isOther = clusterId !== record.clusterId;
    this.#note(revision, isOther ? OTHER_CLUSTER : revision < sentAt ? SEEN_LATER : "");
    return this.#seen.fenced;
  }

  /** Takes note of the term of a leader that was elected. */
  elected({ generation }: StoreRecord, term: bigint): void {
    if (generation === this.#seen.generation) {
      this.#seen = { ...this.#seen, term: max(this.#seen.term, term) };
    }
  }

  #note(revision: bigint, found: string): void {
    const { fenced, revision: highest } = this.#seen;
    this.#seen = { ...this.#seen, fenced: fenced || found, revision: max(highest, revision) };
  }

  #verdict(record: StoreRecord, recordedTerm: bigint, sight: Sight, sentAt: bigint): string {
    if (sight.clusterId !== record.clusterId) return OTHER_CLUSTER;
    if (sight.lead < record.lead) return "the cluster was restored from a snapshot";
    if (sight.term < recordedTerm) return "the cluster is an older copy: it had a later term";
    if (sight.revision < sentAt || sight.term < this.#seen.term) return SEEN_LATER;
    return "";
  }
}

const OTHER_CLUSTER =
  "the cluster is not the one that was accepted: it was restored from a snapshot or copied";
const SEEN_LATER = "the cluster is an older copy: this server has seen later changes";

/**
 * Whether a member's status tells the term of a leader that was elected: the member knows a leader, and its term is the
 * same before and after. A member that only stands for election, cut off from the others, may have any term.
 */
export function isElected(status: {
  readonly header: { readonly raftTerm: string };
  readonly leader: string;
  readonly raftTerm: string;
}): boolean {
  return status.leader !== "0" && status.header.raftTerm === status.raftTerm;
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
