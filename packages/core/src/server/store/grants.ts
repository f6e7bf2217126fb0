import type { Period } from "../../sequence/period.ts";
import type { LedgerRow } from "./ledger.ts";

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
    /** The tag's row cannot be read. */
    | "SCHEMA_MISMATCH"
    | "WRONG_KIND";
  /** For STORE_EPOCH_CHANGED: in words, what went back; for SCHEMA_MISMATCH: why the row cannot be read. */
  readonly detail?: string;
  /** What went back is the store and not the tag: a poll shows it, and also when it is over. */
  readonly ofStore?: boolean;
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

/** The unused end of a grant. */
export interface GiveBackRequest {
  readonly tag: string;
  /** First id that was never issued: the floor becomes `from − 1`. */
  readonly from: bigint;
  /** Last id of the grant: the floor must still be exactly this. */
  readonly to: bigint;
  /** The version the grant was answered with: the row must still have it. */
  readonly version: bigint;
  /** Who gives back, for the ledger; absent: no row of it is written. */
  readonly giver?: Pick<LedgerRow, "atMs" | "nodeId" | "server"> | undefined;
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
