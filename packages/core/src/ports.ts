import type { NodeRenewal, NodeStore, StorePart } from "./node/ports.ts";
import type { PeriodUnit } from "./kinds/sequence.ts";
import type { Tag, TagSettings } from "./tag.ts";

/** Monotonic time in milliseconds, from any origin. Never goes back, never jumps with the wall clock. */
export interface Clock {
  now(): number;
}

/** Runs a function later; the answer cancels it. */
export interface Timers {
  after(delayMs: number, run: () => void): () => void;
}

/** What is needed of an AbortSignal. */
export interface Abort {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** A number in [0, 1), for jitter only. */
export type Random = () => number;

/** One wish for ids of one tag. */
export interface GrantRequest {
  readonly tag: string;
  /** The kind the caller takes the tag for; a row of another, or a sequence that counts in Redis, is WRONG_KIND. */
  readonly kind: "segment" | "sequence";
  /** Ids wanted; the grant is smaller only where the tag ends. */
  readonly count: number;
  /** Fewest ids that are of use; with less left the request is refused as TAG_EXHAUSTED. 1 … count. */
  readonly minCount: number;
  /** A bound the caller has seen; refused when above the floor. 0n: none. The grant always lies above the floor. */
  readonly after: bigint;
  /**
   * The highest version of the tag this server had seen when it sent the request; 0n: none. A row with a lower one
   * means that the store went back, and nothing is granted.
   */
  readonly seenVersion: bigint;
}

/** Ids (floor − count, floor] granted to the caller, durable before this answer. */
export interface Granted {
  readonly outcome: "granted";
  readonly tag: string;
  /** First id granted. */
  readonly base: bigint;
  readonly count: number;
  readonly version: bigint;
  readonly epoch: bigint;
  /** The period these ids belong to; undefined for tags without periods. */
  readonly period: Period | undefined;
}

/** A period of a sequence, as the store's clock and the tag's time zone had it when ids were granted. */
export interface Period {
  /** The row's unit when the ids were granted: the caller's record of the tag may be older, and would misname them. */
  readonly unit: PeriodUnit;
  /** First day, YYYY-MM-DD. */
  readonly start: string;
  /** When it ends, milliseconds since 1970, by the store's clock. */
  readonly endsAtMs: number;
  /** Why a clock is not to be trusted about it; absent when nothing speaks against it. */
  readonly doubt?: PeriodDoubt;
}

/**
 * What speaks against a period.
 *
 * - `AHEAD`: it is later than the clocks are. A clock that had jumped forward began it; an operator may go back from it.
 * - `HELD_BACK`: the store's clock is in a later one, and this server's is not. It goes on until both are.
 */
export type PeriodDoubt = "AHEAD" | "HELD_BACK";

/** Nothing was granted, and why. */
export interface Refused {
  readonly outcome: "refused";
  readonly tag: string;
  readonly reason:
    | "TAG_NOT_FOUND"
    | "TAG_PAUSED"
    | "TAG_EXHAUSTED"
    | "AFTER_ABOVE_FLOOR"
    /** The tag is in another database of the store, or on its way there; worth another try in a moment. */
    | "TAG_MOVED"
    | "STORE_EPOCH_CHANGED"
    | "WRONG_KIND";
  /** For STORE_EPOCH_CHANGED: in words, what went back. */
  readonly detail?: string;
}

/** Nothing was granted, since another session of the store works on the tag's row at this moment. */
interface Locked {
  readonly outcome: "locked";
  readonly tag: string;
}

/** The answer of the store to one GrantRequest. */
export type Grant = Granted | Locked | Refused;

/** What `grant` does about a tag whose row another session has locked. */
export interface GrantOptions {
  /**
   * Answers `locked` after a moment, so that one such tag does not keep the others of a batch waiting. Default: false, the
   * call waits until the row is free or its time is up. Stores that lock as a whole answer no `locked`.
   */
  readonly skipLocked?: boolean;
}

/**
 * Where floors are durable. Every method rejects with IdmintError STORE_UNAVAILABLE when its outcome is not known or
 * nothing was done for want of the store; the caller treats both alike: what may have been granted is never used.
 */
export interface GrantStore {
  /**
   * Grants ids of several tags in one round trip and one transaction; the answers are in the order of the requests.
   * No tag occurs twice. At most `maxBatch` requests.
   */
  grant(requests: readonly GrantRequest[], options?: GrantOptions): Promise<readonly Grant[]>;
  /** Most requests one `grant` takes. */
  readonly maxBatch: number;
  /**
   * Of a store in several parts that fail independently: the part a tag is in now. Callers keep the tags of different
   * parts in calls of their own, so that one that is away keeps no others waiting. Not set: the store is one.
   */
  readonly groupOf?: (tag: string) => string;
}

/** A wish to raise the durable bound of a tag that counts in Redis. */
export interface RaiseRequest {
  readonly tag: string;
  /** How far the floor shall rise; 0n with `atLeast`. */
  readonly by: bigint;
  /** The floor shall be at least this afterwards. 0n: no such wish. */
  readonly atLeast: bigint;
  /**
   * Redis is to be given a new start: the generation rises by one too, so that no other server is given the same one.
   */
  readonly newGeneration: boolean;
  /**
   * With `newGeneration`: it shall be at least this, so that it is none that Redis may know from elsewhere, such as a
   * history of the store that was lost. Default: 0n.
   */
  readonly generationFrom?: bigint;
  /** As in GrantRequest. */
  readonly seenVersion: bigint;
}

/** A raised bound, durable before this answer. The ids (before, floor] belong to the tag's Redis and to nobody else. */
export interface Raised {
  readonly outcome: "raised";
  readonly tag: string;
  readonly before: bigint;
  /** Never above the ceiling. */
  readonly floor: bigint;
  readonly generation: bigint;
  readonly version: bigint;
  readonly epoch: bigint;
}

/** Keeps the bounds of tags that count in Redis. */
export interface RaiseStore {
  /**
   * floor := min(ceiling, max(floor + by, atLeast)), version + 1, and generation + 1 if wished, in one transaction with
   * the guards of `grant`. TAG_EXHAUSTED when the floor is the ceiling already; WRONG_KIND for tags that do not count in
   * Redis.
   */
  raise(request: RaiseRequest): Promise<Raised | Refused>;
}

/** A tag that counts in Redis, under one generation. */
export interface MarkedGeneration {
  readonly tag: string;
  readonly generation: bigint;
}

/**
 * How far a tag had counted in Redis under a generation, as somebody was answered: the last id of a sequence, the position
 * after the last of a redis_snowflake, the number of changes of a registry of workers.
 */
export interface RedisMark extends MarkedGeneration {
  readonly mark: bigint;
}

/** Remembers marks for all servers, so that each knows what the others were answered. */
export interface MarkStore {
  /**
   * Keeps each of `risen` where none of its generation is kept, or a lower one. Answers what is kept of those `asked` for
   * and of higher generations of the same tags, with or without what is risen now. Of each tag the eight highest generations
   * are kept. One round trip; neither revision nor version changes. At most 1,000 of each, and no tag twice.
   */
  exchangeMarks(
    risen: readonly RedisMark[],
    asked: readonly MarkedGeneration[],
  ): Promise<readonly RedisMark[]>;
}

/** A wish for a worker id of a tag of kind snowflake. */
export interface WorkerLeaseRequest {
  readonly tag: string;
  /** Stable name of the holder; who had a worker id under this name in this data centre gets it back. */
  readonly instance: string;
  /** Undefined: that of the tag. */
  readonly dataCenter: number | undefined;
  /** How far ahead of use time is reserved, in milliseconds; 1,000 … 60,000. */
  readonly reserveAheadMs: number;
  /** Epoch of the record by whose layout ids will be made; in another one: SEGMENT_NOT_READY. Undefined: any. */
  readonly epoch?: bigint | undefined;
}

/** Which worker id of a tag, and the token of the last answer about it. */
export interface WorkerLeaseKey {
  readonly tag: string;
  readonly dataCenter: number;
  readonly workerId: number;
  readonly token: bigint;
}

/** A wish to keep a lease, and to raise its reservation. */
export interface WorkerRenewal extends WorkerLeaseKey {
  /** Up to where to reserve, milliseconds since 1970. 0: not raised. */
  readonly reserveUntilMs: number;
  readonly reserveAheadMs: number;
  /** That of the answer before, or one more: then the reservation begins anew. */
  readonly extension: number;
}

/** What a renewal answers, durable before this answer. Times are milliseconds since 1970. */
export interface RenewedWorkerLease {
  /** Good for one call. */
  readonly token: bigint;
  readonly ttlMs: number;
  readonly extension: number;
  /** Last millisecond reserved for the holder. */
  readonly reservedUntilMs: number;
  /** The registry's clock. */
  readonly nowMs: number;
  /** The tag's epoch. */
  readonly epoch: bigint;
}

/** What a lease answers, durable before this answer. */
export interface WorkerLease extends RenewedWorkerLease {
  readonly dataCenter: number;
  readonly workerId: number;
  /** First millisecond reserved: one after all that was ever reserved of this worker id and extension. */
  readonly notBeforeMs: number;
}

/** A worker id that was leased, as the registry has it. */
export interface Worker {
  readonly dataCenter: number;
  readonly workerId: number;
  /** Who leased it last. */
  readonly instance: string;
  /** Of the last answer; counts every lease and renewal of this worker id. */
  readonly token: bigint;
  readonly extension: number;
  /** Last millisecond that was ever reserved of this extension. */
  readonly reservedUntilMs: number;
  /** When the lease ends without a renewal, by the registry's clock. */
  readonly expiresAtMs: number;
}

/**
 * Leases worker ids of tags of kind snowflake. Every change is one transaction, durable before its answer, with the
 * guards of `grant` (TAG_NOT_FOUND, WRONG_KIND, TAG_PAUSED, STORE_EPOCH_CHANGED as IdmintError). The decisions are those
 * of worker/registry-state.ts, made on rows that are locked until they are written.
 *
 * INVARIANTS
 * 1. Of one worker id, no pair (extension, millisecond) is ever reserved by two answers of different leases. What is
 *    reserved only grows: the pair (extension, reservedUntilMs) of a row never falls, and no row is ever removed.
 * 2. A reservation is raised only for who presents the row's token, and each such answer has another token. So of two
 *    who hold the same token, by whatever accident, at most one gets further.
 * 3. The first lease of a tag makes its layout immutable: it raises the tag's version where that is 0. A layout that is
 *    changed before that is of another epoch, so a lease that names its epoch is never used with another layout.
 *
 * An unknown outcome rejects with STORE_UNAVAILABLE; the token may be used up then.
 */
export interface WorkerRegistry {
  /** WORKER_IDS_EXHAUSTED when no worker id of the layout is free. */
  leaseWorker(request: WorkerLeaseRequest): Promise<WorkerLease>;
  /** WORKER_LEASE_LOST when the token is not the row's. */
  renewWorker(renewal: WorkerRenewal): Promise<RenewedWorkerLease>;
  /** Ends a lease at once; its reservation stays. WORKER_LEASE_LOST when the token is not the row's. */
  releaseWorker(key: WorkerLeaseKey): Promise<void>;
  /** Up to `limit` workers of a tag above `after` (undefined: from the first), by data centre and worker id. */
  listWorkers(query: {
    tag: string;
    after: { dataCenter: number; workerId: number } | undefined;
    limit: number;
  }): Promise<readonly Worker[]>;
}

/** A period that has ended, with its last id. */
export interface EndedPeriod {
  readonly start: string;
  readonly lastId: bigint;
  /** When the sequence began its next period, milliseconds since 1970. */
  readonly endedAtMs: number;
}

/** Remembers ended periods. They are written by the grant that begins the next one, which also forgets old ones. */
export interface PeriodStore {
  /** Up to `limit` ended periods of a tag that began before `before` (YYYY-MM-DD; empty: any), newest first. */
  listPeriods(query: {
    tag: string;
    before: string;
    limit: number;
  }): Promise<readonly EndedPeriod[]>;
}

/** The unused end of a grant. */
export interface GiveBackRequest {
  readonly tag: string;
  /** First id that was never issued: the floor becomes `from − 1`. */
  readonly from: bigint;
  /** Last id of the grant: the floor must still be exactly this. */
  readonly to: bigint;
  /** The version the grant was answered with: the row must still have it. */
  readonly version: bigint;
}

/** Takes back ids nobody was given, where the floor still ends at them. */
export interface GiveBackStore {
  /**
   * Lowers the floor where it is still `to` and the version still that of the grant, and raises the version. Answers
   * how many ids were taken back, per request (0 where another grant came after). Try once: an unknown outcome leaves
   * a gap.
   */
  giveBack(requests: readonly GiveBackRequest[]): Promise<readonly number[]>;
}

/** A change of settings. Once ids may have been issued, only what tunes a kind may change (FIELD_IMMUTABLE). */
export interface TagChange {
  readonly description?: string;
  readonly settings?: Pick<TagSettings, "order" | "ceiling" | "kind">;
  /** How ids are written, as a whole: what is absent in it is taken away. */
  readonly texts?: Pick<TagSettings, "format" | "unguessable">;
  /** Whoever was allowed to hold ids for longer by the row's `earlier` settings holds none any more. Default: false. */
  readonly isEarlierOver?: boolean;
}

/** How a change is made. */
export interface ChangeOptions {
  /** Checks everything and answers what the change would answer, without making it. Default: false. */
  readonly validateOnly?: boolean;
}

/**
 * Tags as operators see them. `expectedRevision` (from an etag): undefined, no check; another than the row's: ABORTED
 * ETAG_MISMATCH. Unknown or deleted names: NOT_FOUND TAG_NOT_FOUND. Each change takes the store's next revision, and
 * every method first compares the store's identity: FAILED_PRECONDITION STORE_EPOCH_CHANGED.
 */
export interface TagStore {
  /**
   * Makes a tag with floor = start − 1, version 0 and epoch 1. With the same settings already there: answers it, and
   * changes nothing; with others: ALREADY_EXISTS TAG_EXISTS. Over a tombstone: ACTIVE again with the new settings,
   * floor = max(old floor, start − 1), version + 1, epoch + 1, generation + 1, its period kept (INVALID_ARGUMENT when that
   * floor is above the ceiling, or does not hold the new ids: over a sequence with periods that issued any only one with
   * the same unit is made, over a ticket tag only one with as many slots). Of tags that count in Redis the place that
   * servers chose makes no difference. INVALID_ARGUMENT for a time zone that the runtime or the store does not know.
   */
  createTag(settings: TagSettings, options?: ChangeOptions): Promise<Tag>;
  /** The tags of these names, tombstones included, in any order; unknown ones are left out. At most 1,000 names. */
  getTags(names: readonly string[]): Promise<readonly Tag[]>;
  /** Up to `limit` tags with name > `afterName`, by code point, whose name starts with `prefix`. */
  listTags(query: {
    afterName: string;
    prefix: string;
    showDeleted: boolean;
    limit: number;
  }): Promise<readonly Tag[]>;
  updateTag(
    name: string,
    change: TagChange,
    expectedRevision: bigint | undefined,
    options?: ChangeOptions,
  ): Promise<Tag>;
  /**
   * Raises the floor, with periods that of the row's period, to `floor` (version + 1, epoch + 1, generation + 1 where Redis
   * counts) if it is lower; otherwise changes nothing.
   */
  advanceTag(
    name: string,
    floor: bigint,
    options: ChangeOptions & { maxRaise: bigint; expectedRevision: bigint | undefined },
  ): Promise<{ tag: Tag; raised: boolean }>;
  /**
   * Goes back to an earlier period of a sequence, above every id that it gave (version + 1, epoch + 1); already there:
   * changes nothing. `floor`: a bound of those ids, required where the store does not know one (INVALID_ARGUMENT). The
   * period that is left goes on above its own ids when its time comes. WRONG_KIND for tags without periods.
   */
  returnToPeriod(
    name: string,
    period: { readonly start: string; readonly floor: bigint | undefined },
    options: ChangeOptions & { expectedRevision: bigint | undefined },
  ): Promise<{ tag: Tag; returned: boolean }>;
  /** Sets the state (epoch + 1) if it is another; otherwise changes nothing. DELETED makes a tombstone. */
  setTagState(
    name: string,
    state: "ACTIVE" | "PAUSED" | "DELETED",
    expectedRevision: bigint | undefined,
    options?: ChangeOptions,
  ): Promise<Tag>;
}

/** A tag and the highest version of it that this server has seen. */
export interface SeenVersion {
  readonly tag: string;
  readonly version: bigint;
}

/** What changed in the store since the last poll. */
export interface StoreChanges {
  /** Random name of the store's history; another one after every `idmint store accept`. */
  readonly incarnation: string;
  /** The store's revision: counts every change of a tag's settings, state or floor by an operator. */
  readonly revision: bigint;
  /** Tags changed by operators after `since`, oldest change first, at most `limit`; `more` when there are further ones. */
  readonly changed: readonly Tag[];
  readonly more: boolean;
  /** With `more`: where the next poll goes on, if not after the last change's revision. */
  readonly next?: bigint | undefined;
  /** Those of the watched tags whose row is missing or has a lower version than was seen: the store went back. */
  readonly behind: readonly string[];
  /** Why nothing may be granted (its identity is not the accepted one), in words; empty when all is well. */
  readonly fenced: string;
  /** The store's wall clock, milliseconds since 1970. */
  readonly nowMs: number;
  /** The databases that answered; of a store that is one database exactly one. */
  readonly parts: readonly StorePart[];
}

/** How servers learn of each other's changes, and of a store that went back, without a query per request. */
export interface ChangeStore {
  /**
   * One round trip. At most 1,000 watched tags. `renewal` is written into the server's row, which is made where there is
   * none (unless there are MAX_NODES already); where that is not possible the poll is answered all the same. `nodes`: answer
   * the rows of servers too.
   */
  changes(query: {
    since: bigint;
    watched: readonly SeenVersion[];
    limit: number;
    renewal?: NodeRenewal | undefined;
    nodes?: boolean;
  }): Promise<StoreChanges>;
}

/** Accepting a store that went back. */
export interface AcceptStore {
  /**
   * Accepts the store as it is now: raises every tag's floor by `gap` (at most to its ceiling), its version by one and
   * its epoch above any it may have had, begins the present period of sequences that restart, takes the next generation
   * of tags that count in Redis, records the present identity, and begins a new incarnation. One transaction. The rows of
   * servers may have been lost: a row that never moves stands for all of them (lostNodes), with the longest `maxOfflineMs`
   * that is known; by default DEFAULT_MAX_OFFLINE_MS, null for none.
   */
  accept(gap: bigint, maxOfflineMs?: number | null): Promise<{ tags: number }>;
}

/** Everything a server needs of its store. Adapters implement it; nothing of a driver shows. See STORE_CALLS too. */
export interface Store
  extends
    GrantStore,
    RaiseStore,
    MarkStore,
    GiveBackStore,
    TagStore,
    PeriodStore,
    ChangeStore,
    NodeStore,
    WorkerRegistry,
    AcceptStore {
  /** `sqlite` or `postgres`; for status and metrics. */
  readonly backend: string;
  /** Version of the schema that `open` found. */
  readonly schemaVersion: number;
  close(): Promise<void>;
}
