import type { Segment } from "@idmint/core";

/** Options of one call. */
export interface CallOptions {
  /**
   * How long to wait at most, in milliseconds. Shortly before, the call is refused with SEGMENT_NOT_READY. Ids in memory
   * never wait. Default: the client's `deadlineMs`, or about a second while no server has ever been reached: then the
   * address is probably wrong. Range: 1 … 3,600,000.
   */
  readonly deadlineMs?: number;
  /** Ends the wait with CALL_CANCELLED when it is aborted. Default: none. */
  readonly signal?: AbortSignal;
}

/** Options of `nextString`. */
export interface TextOptions extends CallOptions {
  /**
   * What the id is made of: required for tags of kind uuid, versions 3 and 5, and refused for all others. Range: 1 … 4,096
   * bytes.
   */
  readonly name?: string;
}

/** An id of a sequence that starts again every period: unique together with the period, and as `text` by itself. */
export interface PeriodId {
  /** As 2026-11-21, 2026-W47, 2026-11 or 2026. */
  readonly period: string;
  /** Strictly increasing within the period, from 1 on. */
  readonly id: bigint;
  /** Period and id, as 20261121-1, 2026W47-1, 202611-1 or 2026-1. */
  readonly text: string;
  /** When the period ends, by the store's clock. */
  readonly endsAt: Date;
}

/**
 * The ids of one tag. Every method that answers ids answers each id once, never the same twice, whoever else asks.
 *
 * Of which kind a tag is, the servers say at its first use. Ids of kind segment are held in memory; those of kinds
 * snowflake (under a worker id that is leased, see `IdClientOptions.worker`), uuid and object_id are made here. Those of
 * all others (sequence, redis_snowflake, ticket), and ids that are written by a format or a key, come from the servers one
 * by one: calls for them that come together share one request, and what needs ids at once (`nextSync` and its like,
 * `warm`) is refused with WRONG_KIND. Ids that are text are had by `nextString` only; the rest is refused with WRONG_KIND.
 *
 * Errors are IdmintError: `retryable` ones (SEGMENT_NOT_READY, SERVER_UNAVAILABLE, CLOCK_MOVED_BACKWARDS) may be tried
 * again later, WORKER_IDS_EXHAUSTED, TAG_NOT_FOUND, TAG_PAUSED, TAG_EXHAUSTED, WRONG_KIND and CLIENT_CLOSED say what must change first.
 */
export interface IdTag extends AsyncIterable<bigint> {
  /** The tag's name. */
  readonly name: string;

  /**
   * The next id. From memory where one is ready, otherwise it waits for the servers until the deadline. An id of a sequence
   * is larger than every one that was answered before this call, to whomever. Tags with periods refuse it with WRONG_KIND:
   * their ids are unique with their period only, see `nextPeriodId`.
   */
  next(options?: CallOptions): Promise<bigint>;
  /** The next id as text: as the tag's format writes it, a UUID, an ObjectId, or in decimal. */
  nextString(options?: TextOptions): Promise<string>;
  /**
   * The next id as a number. Rejects with UNSAFE_INTEGER when it is past 2^53 − 1; that id is issued to nobody else,
   * and stands in the error's `metadata.id`.
   */
  nextNumber(options?: CallOptions): Promise<number>;

  /**
   * The next id of a sequence that starts again every period, with its period: at or after the period of every answer
   * before this call, and larger within it. Rejects with WRONG_KIND for tags without periods.
   */
  nextPeriodId(options?: CallOptions): Promise<PeriodId>;

  /**
   * The next id, without waiting: what synchronous code needs, such as a default value of an ORM. Throws
   * SEGMENT_NOT_READY when no id is in memory, and starts to fetch some; `await warm()` once before. From the first
   * call on ids are kept ready, and renewed before they get too old.
   */
  nextSync(): bigint;
  /** The next id as text, without waiting; see `nextSync`. */
  nextStringSync(): string;
  /** The next id as a number, without waiting; see `nextSync`. Past 2^53 − 1 it throws UNSAFE_INTEGER, and issues nothing. */
  nextNumberSync(): number;

  /**
   * `count` ids as segments: `base`, `base + increment`, …, `count` of them each; `idsOf(segments)` lists them. All or
   * nothing. Range: 1 … 1,000,000,000 and the server's own limit (10,000,000 by default, and never more for kinds that are
   * not held in memory). Sequences refuse it with WRONG_KIND: an id used later than it was taken is out of order.
   */
  take(count: number, options?: CallOptions): Promise<readonly Segment[]>;

  /** Waits until ids are in memory, and keeps them ready from now on: call it at start, before `nextSync`. */
  warm(options?: CallOptions): Promise<void>;

  /** All further ids, one by one. Never ends by itself; throws what `next` rejects with. */
  [Symbol.asyncIterator](): AsyncIterableIterator<bigint>;
}

/**
 * Mints ids from segments held in memory, fetched ahead of use. Make one per process and share it: its ids in memory
 * belong to this process (and thread) alone. It cannot be posted to a worker; make one there.
 */
export interface IdClient extends AsyncDisposable {
  /** The tag of this name; the same object for the same name. Nothing is fetched before it is used. */
  tag(name: string): IdTag;
  /**
   * Gives unused ids back to the servers, once and within 2 s, and closes the connections. What cannot be given back
   * becomes a gap. Calls that wait, and all later ones, are refused with CLIENT_CLOSED. Never rejects.
   */
  close(): Promise<void>;
  /** The same as `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
