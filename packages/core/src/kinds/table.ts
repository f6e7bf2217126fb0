import { OBJECT_ID, type ObjectIdDraft, type ObjectIdKind } from "./object-id.ts";
import {
  REDIS_SNOWFLAKE,
  type RedisSnowflakeDraft,
  type RedisSnowflakeKind,
} from "./redis-snowflake.ts";
import { SEGMENT, type SegmentDraft, type SegmentKind } from "./segment.ts";
import { SEQUENCE, type SequenceDraft, type SequenceKind } from "./sequence.ts";
import { SNOWFLAKE, type SnowflakeDraft, type SnowflakeKind } from "./snowflake.ts";
import type { Fields, KindSpec, Value, Values } from "./spec.ts";
import { TICKET, type TicketDraft, type TicketKind } from "./ticket.ts";
import { UUID, type UuidDraft, type UuidKind } from "./uuid.ts";

/** The settings of each kind of tag. */
export type TagKind =
  | SegmentKind
  | SequenceKind
  | RedisSnowflakeKind
  | TicketKind
  | SnowflakeKind
  | UuidKind
  | ObjectIdKind;

/** Settings of a kind as a caller wrote them. */
export type KindDraft =
  | SegmentDraft
  | SequenceDraft
  | RedisSnowflakeDraft
  | TicketDraft
  | SnowflakeDraft
  | UuidDraft
  | ObjectIdDraft;

export type KindName = TagKind["kind"];

type SpecOf<Name extends KindName> = KindSpec<
  Name,
  Extract<KindDraft, { kind: Name }>,
  Extract<TagKind, { kind: Name }>
>;

/** Any of the kinds. */
export interface AnyKind extends Omit<KindSpec<KindName, KindDraft, TagKind>, "fields"> {
  readonly fields: Fields;
}

export const KINDS: { readonly [Name in KindName]: SpecOf<Name> } = {
  segment: SEGMENT,
  sequence: SEQUENCE,
  redis_snowflake: REDIS_SNOWFLAKE,
  ticket: TICKET,
  snowflake: SNOWFLAKE,
  uuid: UUID,
  object_id: OBJECT_ID,
};

export const KIND_NAMES: readonly KindName[] = Object.keys(KINDS) as KindName[];

/** The kind of settings, or of a draft of them. */
export function specOf({ kind }: { readonly kind: KindName }): AnyKind {
  // A spec takes drafts and settings of its own kind only, which these are.
  return KINDS[kind];
}

/**
 * What ids of a kind come from: segments that servers and SDKs hold; a counter that is asked for each call; ticket databases;
 * a lease of a worker id; whoever is asked, by itself.
 */
const COME_FROM = {
  segment: "segments",
  sequence: "counter",
  redis_snowflake: "counter",
  ticket: "tickets",
  snowflake: "lease",
  uuid: "itself",
  object_id: "itself",
} as const;

type Origin = (typeof COME_FROM)[KindName];
type KindFrom<From extends Origin> = {
  [Name in KindName]: (typeof COME_FROM)[Name] extends From ? Name : never;
}[KindName];

/** Whether ids of a kind come from there. */
export function comesFrom<Of extends { readonly kind: KindName }, From extends Origin>(
  settings: Of,
  from: From,
): settings is Of & { readonly kind: KindFrom<From> } {
  return COME_FROM[settings.kind] === from;
}

/** Whether the ids of a kind are numbers that follow each other up to the ceiling. */
export function isCounted(settings: { readonly kind: KindName }): boolean {
  const { ids, composed } = specOf(settings);
  return ids === "number" && composed === undefined;
}

/** Whether they follow each other up to the floor of its row, so that the row says how many are gone. */
export function countsToFloor(settings: { readonly kind: KindName }): boolean {
  return isCounted(settings) && specOf(settings).issuesToFloor;
}

/** Why no tag of a kind has unguessable ids; undefined: some may. */
export function whyNotHidden(settings: { readonly kind: KindName }): string | undefined {
  if (!isCounted(settings)) return "its ids are no numbers counted from 1";
  if (specOf(settings).orders.includes("UNORDERED")) return undefined;
  return "its ids have an order, and unguessable ids have none";
}

/** Settings that must be of a kind, for what was made for tags of it. */
export function asKind<Name extends KindName>(
  settings: TagKind,
  name: Name,
): Extract<TagKind, { readonly kind: Name }> {
  if (settings.kind !== name) throw new Error(`settings of kind ${settings.kind}, not ${name}`);
  return settings as Extract<TagKind, { readonly kind: Name }>;
}

/** The settings as values of their fields; see `draftOf` of the kind. */
export function valuesOf(settings: TagKind): Values {
  return specOf(settings).draftOf(settings) as unknown as Values;
}

/** The value of a draft's field. */
export function valueOf(draft: KindDraft | undefined, name: string): Value {
  return (draft as unknown as Values | undefined)?.[name];
}

/** A draft with other values of its fields. */
export function withValues(draft: KindDraft, values: Values): KindDraft {
  return { ...draft, ...values };
}
