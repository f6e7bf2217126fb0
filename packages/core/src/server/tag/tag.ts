import type { Periods } from "../../kinds/sequence.ts";
import type { Order } from "../../kinds/spec.ts";
import { specOf, type TagKind } from "../../kinds/table.ts";

/** Most ids AdvanceTag raises a floor by without being told that it is meant. */
export const MAX_RAISE: bigint = 1_000_000_000_000n;
/** Longest description of a tag, in characters. */
export const MAX_DESCRIPTION_LENGTH = 256;

/** The first id that a tag of this kind may issue. */
export function firstIdOf(kind: TagKind): bigint {
  return "start" in kind ? kind.start : 1n;
}

/** The periods of a tag's sequence; undefined for every other tag. */
export function periodsOf(kind: TagKind): Periods | undefined {
  return "periods" in kind ? kind.periods : undefined;
}

/** How the ids of a tag are written as text. */
export interface Format {
  readonly template: string;
}

/** A key that ids of a tag were made with: its number, and what tells it from other keys without saying it. */
export interface KeyCheck {
  readonly keyId: number;
  /** 16 hexadecimal digits. */
  readonly check: string;
}

/** By which key the numbers of a tag are permuted. The key itself is in the configuration of servers only. */
export interface Unguessable {
  /** Number of the key; 1 … 10^keyDigits − 1. */
  readonly keyId: number;
  /** How many of the highest decimal digits of an id hold the number of its key; 1 … 3. */
  readonly keyDigits: number;
  /**
   * Every key the tag ever had, that of keyId included, ascending by number. A server whose key of a number has another
   * check refuses: two keys under one number would make the same ids of different numbers.
   */
  readonly keys: readonly KeyCheck[];
}

/** What a caller decides about a tag. */
export interface TagSettings {
  readonly name: string;
  readonly description: string;
  readonly order: Order;
  /** Highest id the tag may issue. */
  readonly ceiling: bigint;
  readonly kind: TagKind;
  /** Absent: ids are numbers. Never with kinds uuid and object_id. */
  readonly format?: Format;
  /** Absent: ids are as they were minted. Never with kinds uuid and object_id. */
  readonly unguessable?: Unguessable;
}

/** Whether a tag issues ids. */
export type TagState = "ACTIVE" | "PAUSED" | "DELETED";

/** How long callers may hold ids by themselves that they were given before the tag was changed to allow less. */
export interface EarlierMemory {
  readonly memoryMs: number;
  /** Since every server has obeyed this revision, nobody is given ids for so long any more. */
  readonly revision: bigint;
}

/** A period that a tag was in and is not in now: it ended, or an operator went back from it. */
export interface OtherPeriod {
  /** First day, YYYY-MM-DD. */
  readonly start: string;
  /** Highest id that may have been issued in it; FORGOTTEN where nothing is known of this day and all days before. */
  readonly lastId: bigint;
}

/** In place of a last id: an accept forgot the periods up to this day. */
export const FORGOTTEN = -1n;

/** A tag as its row in the store has it. */
export interface Tag extends TagSettings {
  readonly state: TagState;
  /** Highest id that may have been issued. */
  readonly floor: bigint;
  /** First day of the current period, YYYY-MM-DD; empty before the first id and without periods. */
  readonly periodStart: string;
  /**
   * Other periods that the tag has been in and their last ids, so that none begins twice with the same ids; newest first.
   * Absent: none.
   */
  readonly otherPeriods?: readonly OtherPeriod[];
  /**
   * Of a tag that counts in Redis: rises whenever Redis is given a new start, so that an older Redis is known by it. It
   * rises with every tag made over a tombstone too, whatever it counts in; 0n in any other tag.
   */
  readonly generation: bigint;
  /** Rises with every grant, give-back and raise of the floor; 0 means that nothing was ever issued. */
  readonly version: bigint;
  /** Rises when an operator advances, pauses, resumes or deletes the tag, or accepts a store that went back. */
  readonly epoch: bigint;
  /** The store's revision at the last change by an operator; the tag's etag is made of it. */
  readonly revision: bigint;
  /** Absent: no callers hold ids for longer than the present settings say. */
  readonly earlier?: EarlierMemory;
  /** By the store's clock, milliseconds since 1970. */
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** A tag whose row cannot be read. */
export interface UnreadableTag {
  readonly tag: string;
  /** Why, and what to do about it, in words. */
  readonly detail: string;
}

/** Whether ids may have been issued. The store does not hear of ids of a ticket tag. */
export function mayHaveIssued({ version, kind }: Pick<Tag, "kind" | "version">): boolean {
  return version > 0n || !specOf(kind).reportsIssued;
}
