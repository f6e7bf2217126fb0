import type { Segment } from "@idmint/core";

/** Options of one call. */
export interface CallOptions {
  /**
   * How long to wait at most, in milliseconds. Shortly before, the call is refused with SEGMENT_NOT_READY. Ids in memory
   * never wait. Default: the client's `deadlineMs`, or about a second while no server has ever been reached: then the
   * address is probably wrong. Range: 1 … 3,600,000.
   */
  readonly deadlineMs?: number | undefined;
  /** Ends the wait with CALL_CANCELLED when it is aborted; the error's `cause` is the signal's `reason`. Default: none. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of `nextString`. */
export interface TextOptions extends CallOptions {
  /**
   * The name that the id is made from. Tags of kind uuid, versions 3 and 5, require it; all others refuse it. Range:
   * 1 … 4,096 bytes.
   */
  readonly name?: string | undefined;
}

/** An id of a sequence that starts again every period. It is unique together with its period; `text` has both. */
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
 * The ids of one tag. No id is ever answered twice, whoever else asks.
 *
 * The servers tell the kind of a tag at its first use:
 * - Ids of kind segment are held in memory.
 * - Ids of kinds snowflake, uuid and object_id are made here. Snowflakes need a leased worker id, see
 *   `IdClientOptions.worker`.
 * - Ids of all other kinds (sequence, redis_snowflake, ticket), and ids with a format or a key, come from the servers.
 *   Calls that come together share one request. Methods that need ids at once (`nextSync` and its like, `warm`) refuse
 *   such a tag with WRONG_KIND.
 * Use `nextString` for text ids; the other methods refuse them with WRONG_KIND.
 *
 * Errors are IdmintError. Try again later after a `retryable` one, whose code is UNAVAILABLE. After any other (TAG_NOT_FOUND, TAG_PAUSED, TAG_EXHAUSTED, WRONG_KIND, WORKER_IDS_EXHAUSTED,
 * SEGMENT_INVALID, CLIENT_CLOSED) something must change first; the message says what. Each call is refused with an error of its own,
 * whose `cause` is the one that all calls of a load share. Methods are not bound: one that is called without its tag is refused with
 * INVALID_ARGUMENT, and so are options that are none.
 */
export interface IdTag extends AsyncIterable<bigint> {
  /** The tag's name. */
  readonly name: string;

  /**
   * The next id: from memory if one is ready, else from the servers, within the deadline. An id of a sequence is larger
   * than every id that anyone received before this call. Tags with periods refuse this method with WRONG_KIND, since their
   * ids are unique only together with the period: use `nextPeriodId`.
   */
  next(options?: CallOptions): Promise<bigint>;
  /** The next id as text: in the tag's format, as a UUID or an ObjectId, or in decimal. */
  nextString(options?: TextOptions): Promise<string>;
  /**
   * The next id as a number. Rejects with UNSAFE_INTEGER when the id is past 2^53 − 1. Nobody else gets that id; it is in
   * the error's `metadata.id`.
   */
  nextNumber(options?: CallOptions): Promise<number>;

  /**
   * The next id of a sequence that starts again every period, with its period. No earlier answer is of a later period, and
   * within a period ids rise. Tags without periods refuse this method with WRONG_KIND.
   */
  nextPeriodId(options?: CallOptions): Promise<PeriodId>;

  /**
   * The next id, without waiting: for synchronous code, such as a default value of an ORM. When no id is in memory it
   * throws SEGMENT_NOT_READY and starts to fetch some, so call `await warm()` once before. From the first call on, the
   * SDK keeps ids ready and renews them before they get too old.
   */
  nextSync(): bigint;
  /** The next id as text, without waiting; see `nextSync`. */
  nextStringSync(): string;
  /** The next id as a number, without waiting; see `nextSync`. Past 2^53 − 1 it throws UNSAFE_INTEGER, and issues nothing. */
  nextNumberSync(): number;

  /**
   * `count` ids as segments, all or none. A segment is `base`, `base + increment`, … with `count` ids; `idsOf(segments)`
   * lists them. Range: 1 … 1,000,000,000 for ids held in memory, else up to the server's limit (10,000,000 by default).
   * Sequences refuse this method with WRONG_KIND, since an id that is used later than it was taken is out of order.
   */
  take(count: number, options?: CallOptions): Promise<readonly Segment[]>;

  /** Waits until ids are in memory, and keeps ids ready from now on. Call it at start, before `nextSync`. */
  warm(options?: CallOptions): Promise<void>;

  /** All further ids, one by one. It never ends by itself, and throws what `next` rejects with. */
  [Symbol.asyncIterator](): AsyncIterableIterator<bigint>;
}

/**
 * Mints ids from segments in memory, which it fetches before they are needed. Make one per process and share it. Its ids in
 * memory belong to this process and thread alone, so it cannot be posted to another thread: make another one there.
 */
export interface IdClient extends AsyncDisposable {
  /** The tag of this name: the same object for the same name. Nothing is fetched before its first use. */
  tag(name: string): IdTag;
  /**
   * Gives unused ids back to the servers, once and within 2 s, and closes the connections. Ids that cannot be given back
   * become a gap. Waiting calls and all later calls are refused with CLIENT_CLOSED. Never rejects.
   */
  close(): Promise<void>;
  /** The same as `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
