import type { IdmintError, Period, Segment, SegmentBuffer } from "@idmint/core";
import type { SegmentKind, TagKind } from "@idmint/core/kinds";
import type { Tag } from "@idmint/core/server";
import { specOf } from "@idmint/core/kinds";
import type { Patience } from "../call.ts";
import type { Receipt } from "./give-back.ts";
import type { TagText } from "./tag-text.ts";
import type { TagRules } from "./sharing.ts";

/** Every kind whose ids do not come out of a server's segments. */
export type SourceKind = Exclude<TagKind, SegmentKind>;

interface CommonEntry {
  readonly name: string;
  /** Of the newest record seen, as are the rules. */
  revision: bigint;
  /** The ticker's count when it was last asked for ids. */
  usedAt: number;
  /** Which refusal it is fenced with; empty when it issues. */
  fencedAs: string;
  /** How its ids are written, or why they cannot be; undefined where they are plain numbers. */
  text: TagText | IdmintError | undefined;
}

/** A tag of kind segment that this server works with. There may be 100,000 of them, so it holds nothing it can do without. */
export interface SegmentEntry extends CommonEntry {
  rules: TagRules<SegmentKind>;
  readonly buffer: SegmentBuffer<Receipt>;
}

/** A tag of another kind that this server works with. */
export interface SourceEntry extends CommonEntry {
  rules: TagRules<SourceKind>;
  readonly buffer: undefined;
  readonly source: TagSource;
}

export type Entry = SegmentEntry | SourceEntry;

/** What the directory does with whatever issues a tag's ids. */
interface Issuer {
  /** Some answer told the tag's epoch: no ids of lower ones are issued from now on. */
  observeEpoch(epoch: bigint): void;
  /** Refuses whoever waits and whoever asks with `error`, until `unfence`. */
  fence(error: IdmintError): void;
  unfence(): void;
  /** The store is known to be back. */
  retryNow(): void;
  /** To be called about once a second. */
  sample(): void;
  /** Whether calls wait. */
  readonly busy: boolean;
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

export function issuerOf(entry: Entry): Issuer {
  return entry.buffer ?? entry.source;
}

/**
 * Whether the source of a tag with one kind's settings is right for another's: a tag that was deleted and made again may
 * be of another kind, or count elsewhere.
 */
export function isSameSource(one: SourceKind, other: SourceKind): boolean {
  return one.kind === other.kind && specOf(one).countedIn(one) === specOf(other).countedIn(other);
}
