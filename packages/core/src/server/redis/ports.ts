import type { Worker } from "../store/worker-registry.ts";
import type { Position } from "../../kinds/redis-snowflake-layout.ts";

/**
 * What a Redis server counts for one tag is valid only under one *generation*, which the RDBMS gave out with a range of
 * ids of its own, and only in the very Redis process and history that the generation was seeded into.
 *
 * INVARIANTS, kept by every adapter
 * 1. One call is one atomic step in Redis that is sent at most once. It either does what its answer says or changes
 *    nothing; when it rejects with STORE_UNAVAILABLE, it may have been done, and its ids are a gap.
 * 2. Nothing is issued unless the recorded generation is the caller's, the recorded run_id and replication id are those
 *    of the Redis that answers now, and what was counted is not below what the caller has seen answered.
 */
interface Counted {
  readonly tag: string;
  readonly generation: bigint;
}

/** Redis may not issue as it is, and why. Nothing was changed. */
export type RedisDoubt =
  /**
   * It knows nothing of the tag: it is new, or was emptied. It notes that down under a name that no other time of
   * emptiness gets.
   */
  | { readonly status: "missing"; readonly vacancy: string }
  /** What it has was counted by another process, or in another history: an older snapshot, or a fail-over. */
  | { readonly status: "restarted"; readonly generation: bigint }
  /** It was seeded for another generation, higher or lower than the caller's. */
  | { readonly status: "other-generation"; readonly generation: bigint }
  /** It counts below what the caller has seen answered: somebody put an older state into it. */
  | { readonly status: "behind"; readonly generation: bigint }
  /** It was told to stop counting for this tag so long ago, because the tag moves to another Redis server. */
  | { readonly status: "moved"; readonly generation: bigint; readonly agoMs: number };

/** The answer to a seed. */
export type RedisSeeded = { readonly status: "seeded" } | RedisDoubt;

/** A doubt with Redis' clock, milliseconds since 1970. */
export type TimedDoubt = RedisDoubt & { readonly nowMs: number };

/** A wish for consecutive ids. */
export interface SequenceIssueRequest extends Counted {
  /** 0 only looks whether all is well. */
  readonly count: number;
  /** Highest id that the caller has seen answered for this tag. */
  readonly seen: bigint;
}

/** The answer to a wish for ids of a sequence. */
export type SequenceIssued =
  /** Ids (before, last], never above `max`. */
  | {
      readonly status: "issued";
      readonly before: bigint;
      readonly last: bigint;
      readonly max: bigint;
    }
  /** Fewer than `count` are left below `max`; nothing was issued. */
  | { readonly status: "exhausted"; readonly cur: bigint; readonly max: bigint }
  | RedisDoubt;

/** A new start for a generation. */
export interface SequenceSeedRequest extends Counted {
  /** Ids (cur, max] belong to this generation and to no other. */
  readonly cur: bigint;
  readonly max: bigint;
  /** What Redis answered to the caller. */
  readonly doubt: RedisDoubt;
}

/** What a sequence has in Redis, for the loops that watch it. */
export interface SequenceReading {
  readonly cur: bigint;
  readonly max: bigint;
  readonly generation: bigint;
  /** Ids a second over five minutes, as the watcher before wrote it. */
  readonly longTermRate: number;
}

/** Ids a second of one sequence. */
export interface SequenceRates extends Counted {
  readonly recently: number;
  readonly longTerm: number;
}

/** Sequences of one Redis server. */
export interface RedisSequences {
  issue(request: SequenceIssueRequest): Promise<SequenceIssued>;
  /**
   * Begins a generation. Taken only when Redis has a lower generation, or is still empty since the caller was told so;
   * never while the tag moves away. So a seed that comes late is not taken for a first one
   * by a Redis that was emptied meanwhile.
   */
  seed(request: SequenceSeedRequest): Promise<RedisSeeded>;
  /** Raises the maximum of this very generation; false when it is another one, or higher already. */
  raise(request: Counted & { readonly max: bigint }): Promise<boolean>;
  /** Up to `limit` tags this Redis server was seeded for, in rounds: pass the cursor of the answer before, "0" at first. */
  list(cursor: string, limit: number): Promise<{ tags: readonly string[]; cursor: string }>;
  /** Forgets that the Redis server was seeded for a tag. */
  unlist(tag: string): Promise<void>;
  /** What Redis has of these tags, in their order; undefined for what it has not. */
  read(tags: readonly string[]): Promise<readonly (SequenceReading | undefined)[]>;
  /** Writes seq_recently and seq_long_term of these generations, where they are still there. */
  writeRates(rates: readonly SequenceRates[]): Promise<void>;
}

/** A wish for ids of time and counter. */
export interface SnowflakeIssueRequest extends Counted {
  /** 0 only looks whether all is well. */
  readonly count: number;
  /** The position after the last that the caller has seen answered. */
  readonly seen: Position;
}

/** The answer to a wish for ids of time and counter. */
export type SnowflakeIssued =
  /** Positions [first, first + count), within the reservation. */
  | {
      readonly status: "issued";
      readonly first: Position;
      readonly nowMs: number;
      readonly limitMs: number;
    }
  /** They would lie so far ahead of Redis' clock; nothing was issued. */
  | {
      readonly status: "ahead";
      readonly aheadMs: number;
      readonly nowMs: number;
      readonly limitMs: number;
    }
  /** They would pass the reservation; nothing was issued. */
  | { readonly status: "limit"; readonly nowMs: number; readonly limitMs: number }
  | TimedDoubt;

/** A new start for a generation of a tag of kind redis_snowflake. */
export interface SnowflakeSeedRequest extends Counted {
  /** The first position that belongs to this generation. */
  readonly first: Position;
  /** The last millisecond reserved for it; before `first` when nothing is reserved yet. */
  readonly limitMs: number;
  readonly doubt: RedisDoubt;
}

/** Tags of kind redis_snowflake of one Redis server. */
export interface RedisSnowflakes {
  issue(request: SnowflakeIssueRequest): Promise<SnowflakeIssued>;
  /** As with sequences. */
  seed(request: SnowflakeSeedRequest): Promise<RedisSeeded>;
}

/** What is asked of the worker ids of one tag. */
interface WorkersAsked extends Counted {
  /** Highest number of changes that the caller has seen answered for this tag. */
  readonly seen: number;
  readonly dataCenter: number;
}

/** A wish for a worker id of a tag that has its registry in Redis; as in WorkerLeaseRequest. */
export interface RedisLeaseRequest extends WorkersAsked {
  readonly instance: string;
  readonly reserveAheadMs: number;
  /** How many worker ids the layout has. */
  readonly workerIds: number;
}

/** A wish to keep a lease; as in WorkerRenewal. */
export interface RedisRenewal extends WorkersAsked {
  readonly workerId: number;
  readonly token: bigint;
  readonly reserveUntilMs: number;
  readonly reserveAheadMs: number;
}

/** A wish to end a lease. */
export type RedisRelease = Omit<RedisRenewal, "reserveUntilMs" | "reserveAheadMs">;

/** The answer to what is asked of worker ids. */
export type RedisWorkersAnswer =
  | {
      readonly status: "done";
      readonly workerId: number;
      /** Random, and another one after every change. */
      readonly token: bigint;
      readonly notBeforeMs: number;
      readonly reservedUntilMs: number;
      readonly nowMs: number;
      readonly limitMs: number;
      /** How often workers of the tag changed under this generation. */
      readonly changes: number;
    }
  /** It would reserve up to `untilMs`, past what the RDBMS has for this generation; nothing was changed. */
  | { readonly status: "limit"; readonly untilMs: number }
  /** The token is not that of the lease; nothing was changed. */
  | { readonly status: "lost" }
  /** No worker id is free; nothing was changed. */
  | { readonly status: "exhausted" }
  | RedisDoubt;

/** A new start for the worker ids of a tag. */
export interface RedisWorkersSeed extends Counted {
  /** All leases of this generation reserve later times. */
  readonly afterMs: number;
  /** The last millisecond that they may reserve; not after `afterMs` when there is none yet. */
  readonly limitMs: number;
  readonly doubt: RedisDoubt;
}

/**
 * Worker ids of one Redis server, with the decisions of worker/registry-state.ts. Under each generation they begin anew, above
 * all times that an earlier one may have reserved, whatever worker id it was for.
 */
export interface RedisWorkers {
  lease(request: RedisLeaseRequest): Promise<RedisWorkersAnswer>;
  renew(renewal: RedisRenewal): Promise<RedisWorkersAnswer>;
  release(key: RedisRelease): Promise<RedisWorkersAnswer>;
  /** Those of a tag, whatever generation they are of, in any order; the first `limit` after `after`. */
  list(query: {
    tag: string;
    after: { dataCenter: number; workerId: number } | undefined;
    limit: number;
  }): Promise<readonly Worker[]>;
  /** As with sequences. */
  seed(request: RedisWorkersSeed): Promise<RedisSeeded>;
}

/** One Redis that counts. All methods reject with STORE_UNAVAILABLE when Redis is not there or does not answer in time. */
export interface CountingRedis {
  readonly name: string;
  readonly sequences: RedisSequences;
  readonly snowflakes: RedisSnowflakes;
  readonly workers: RedisWorkers;
  /** Whether it is connected. */
  readonly reachable: boolean;
  /** Why it answers and yet counts nothing, in words; empty: it counts, or is not connected. */
  readonly refusal: string;
  /**
   * Raises the last millisecond that a tag may reserve, for its snowflakes or its worker ids. Answers false when Redis has
   * another generation, or a higher limit already.
   */
  raiseLimit(request: Counted & { readonly limitMs: number }): Promise<boolean>;
  /** Stops counting for a tag that moves away, whatever its kind. Idempotent. */
  retire(tag: string): Promise<void>;
  /** Forgets a tag that was told to move, and all of its counts: it may be given a new start here at once. */
  forget(tag: string): Promise<void>;
  close(): Promise<void>;
}
