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
