import type { IdmintError, LeaseLeft, Period, Segment } from "@idmint/core";
import type { SegmentKind, TagKind } from "@idmint/core/kinds";
import type { Tag } from "@idmint/core/server";
import type { Patience } from "../call.ts";

/** Every kind whose ids do not come out of a server's segments. */
export type SourceKind = Exclude<TagKind, SegmentKind>;

/** What the directory does with whatever issues a tag's ids. */
export interface Issuer {
  /** Some answer told the tag's epoch: no ids of lower ones are issued from now on. */
  observeEpoch(epoch: bigint): void;
  /** Refuses whoever waits and whoever asks with `error`, until `unfence`. */
  fence(error: IdmintError): void;
  unfence(): void;
  /** The store is known to be back. */
  retryNow(): void;
  /** To be called about once a second. */
  sample(): void;
  /** Calls that wait. */
  readonly waiting: number;
  /** Ids in memory that may be issued. */
  readonly ready: number;
}

/** Ids of one call, durable. */
export interface TakenIds {
  /** In ascending order, as many ids as were asked for. */
  readonly segments: readonly Segment[];
  /** Instead of segments, for kinds whose ids are no numbers. */
  readonly texts?: readonly string[];
  readonly epoch: bigint;
  /** The period they all belong to; undefined for tags without periods. */
  readonly period: Period | undefined;
}

/** What issues the ids of one tag that is not of kind segment. */
export interface TagSource extends Issuer {
  /** What is left of the lease that its ids are made under; undefined: there is none. */
  readonly leaseLeft?: LeaseLeft | undefined;
  /** Exactly `count` ids (made of `name`, where the kind has names), all or none; it never waits past the call's deadline. Rejects with the refusals of the tag. */
  take(count: number, call: Patience, name?: string): Promise<TakenIds>;
  /** A newer record of the tag was seen, of the same kind and counted in the same way. */
  update(tag: Tag): void;
  /**
   * Stops issuing for good, with `error` to whoever waits or asks; answers how many ids it held, which are a gap. A promise
   * where something is to be given back, which is tried once: it never rejects.
   */
  drain(error: IdmintError): number | Promise<number>;
}
