import { MARKED } from "../../pins/own-row-state.ts";

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
  /** The mark: what a server saw that the store has lost. Nothing is granted until an accept clears it. */
  readonly wentBack?: string;
}

/** What a member said of its cluster after a linearizable read. */
export interface Sight {
  readonly clusterId: string;
  /** Of the read. */
  readonly revision: bigint;
  readonly term: bigint;
  /** Raft's index less the revision of the read. The index was asked for later. */
  readonly lead: bigint;
  /** Of the last write of any server to this store: of the key `room`. 0n: there was none. */
  readonly written: bigint;
}

/** What was seen before a request was sent. */
export interface Moment {
  /** Of the record whose history it was. */
  readonly generation: bigint;
  readonly revision: bigint;
  readonly written: bigint;
  /** Of a leader that was elected. */
  readonly term: bigint;
}

/** Why nothing may be granted, in words; empty: nothing is known against it. */
export interface Judgement {
  readonly fenced: string;
  /** What this very sight shows to be lost, and others may not see for long: to be marked in the store. */
  readonly lost: string;
}

/** The highest that this process saw in one history. */
interface Seen extends Moment {
  /** Of the record. */
  readonly clusterId: string;
  readonly lead: bigint;
  /** Why this history is not granted from any more; empty: it is. */
  readonly fenced: string;
}

const NOTHING: Seen = {
  generation: -1n,
  revision: 0n,
  written: 0n,
  term: 0n,
  clusterId: "",
  lead: 0n,
  fenced: "",
};

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
 * 5. The last write of a server to this store against the last one that this process saw. Others who write to the same etcd
 *    never raise it, so they hide nothing by it.
 *
 * INVARIANTS
 * - No false alarm: every number is compared with one of an earlier moment, of a linearizable read in the same history:
 *   looks may be under way together, sent before this process knew of an accept or an election, and answered after. Terms
 *   that are remembered are those of a leader that was elected (see `isElected`); whoever answered a linearizable read after that
 *   has that term at least.
 * - What was found stays until somebody accepts, that is, until the generation is a higher one: more writes would hide it.
 */
export class GuardState {
  #seen: Seen = NOTHING;

  /** What was seen so far. To be asked when a request is sent. */
  get seen(): Moment {
    return this.#seen;
  }

  /** Takes note of what a member said of the store that this process works with. */
  judge(record: StoreRecord, recordedTerm: bigint, sight: Sight, sentAt: Moment): Judgement {
    const isOther = sight.clusterId !== record.clusterId;
    if (record.generation < this.#seen.generation) {
      return { fenced: SEEN_LATER, lost: isOther ? "" : SEEN_LATER };
    }
    const { generation, clusterId, lead } = record;
    const isNew = generation > this.#seen.generation;
    if (isNew) this.#seen = { ...NOTHING, generation, clusterId, lead };
    const before = sentAt.generation === generation ? sentAt : NOTHING;
    const verdict = verdictOf(record, recordedTerm, sight, before);
    this.#note(sight, verdict);
    const { fenced } = this.#seen;
    const lost = isOther ? "" : verdict;
    if (fenced !== "") return { fenced, lost };
    if (record.wentBack !== undefined) return { fenced: MARKED + record.wentBack, lost };
    return { fenced: record.accepting === undefined ? "" : ACCEPTING, lost };
  }

  /**
   * Whether a cluster without the key \`store\` is the one that had it, by what a member said: then somebody removed it. Any
   * other is another store.
   */
  hasLost({ clusterId, lead, revision }: Sight, sentAt: Moment): boolean {
    const seen = this.#seen;
    return clusterId === seen.clusterId && lead >= seen.lead && revision >= sentAt.revision;
  }

  /** Takes note of the header of an answer, whose store was judged before. */
  checkHeader(record: StoreRecord, clusterId: string, revision: bigint, sentAt: Moment): string {
    // Meanwhile somebody accepted: the answer is judged by its own comparisons alone.
    if (record.generation !== this.#seen.generation) return "";
    const isOther = clusterId !== record.clusterId;
    const found = isOther ? OTHER_CLUSTER : revision < sentAt.revision ? SEEN_LATER : "";
    this.#note({ revision, written: 0n }, found);
    return this.#seen.fenced;
  }

  /** Takes note of a write of this process. */
  wrote({ generation }: StoreRecord, written: bigint): void {
    if (generation === this.#seen.generation) this.#note({ revision: written, written }, "");
  }

  /** Takes note of the term of a leader that was elected. */
  elected({ generation }: StoreRecord, term: bigint): void {
    if (generation === this.#seen.generation) {
      this.#seen = { ...this.#seen, term: max(this.#seen.term, term) };
    }
  }

  #note({ revision, written }: Pick<Moment, "revision" | "written">, found: string): void {
    const seen = this.#seen;
    this.#seen = {
      ...seen,
      fenced: seen.fenced || found,
      revision: max(seen.revision, revision),
      written: max(seen.written, written),
    };
  }
}

function verdictOf(
  record: StoreRecord,
  recordedTerm: bigint,
  { clusterId, lead, revision, written, term }: Sight,
  before: Moment,
): string {
  if (clusterId !== record.clusterId) return OTHER_CLUSTER;
  if (lead < record.lead) return "the cluster was restored from a snapshot";
  if (term < recordedTerm) return "the cluster is an older copy: it had a later term";
  const isEarlier = revision < before.revision || written < before.written || term < before.term;
  return isEarlier ? SEEN_LATER : "";
}

const OTHER_CLUSTER =
  "the cluster is not the one that was accepted: it was restored from a snapshot or copied";
const ACCEPTING =
  "an accept of the store was begun and is not over; run it again if it was interrupted";
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
