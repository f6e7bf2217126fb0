import type { IdmintError, SegmentBuffer } from "@idmint/core";
import { type SegmentKind, specOf } from "@idmint/core/kinds";
import type { Issuer, SourceKind, TagSource } from "../kinds/source.ts";
import type { Receipt } from "./give-back.ts";
import type { TagText } from "./tag-text.ts";
import type { TagRules } from "./sharing.ts";

interface CommonEntry {
  readonly name: string;
  /** Of the newest record seen, as are the rules. */
  revision: bigint;
  /** The ticker's count when it was last asked for ids. */
  usedAt: number;
  /** Ids issued since the entry was made, those included that callers returned. */
  issued: number;
  /** Of them, those that had been issued when the busiest tags were chosen last (telemetry). */
  ranked: number;
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
  /** Of the newest record seen. */
  epoch: bigint;
  readonly buffer: undefined;
  readonly source: TagSource;
}

export type Entry = SegmentEntry | SourceEntry;

export function issuerOf(entry: Entry): Issuer {
  return entry.buffer ?? entry.source;
}

/** Whether calls wait for its ids, or a load of them is under way. */
export function isBusy(entry: Entry): boolean {
  return entry.buffer?.busy ?? issuerOf(entry).waiting > 0;
}

/**
 * Whether the source of a tag with one kind's settings is right for another's: a tag that was deleted and made again may
 * be of another kind, or count elsewhere.
 */
export function isSameSource(one: SourceKind, other: SourceKind): boolean {
  return one.kind === other.kind && specOf(one).countedIn(one) === specOf(other).countedIn(other);
}
