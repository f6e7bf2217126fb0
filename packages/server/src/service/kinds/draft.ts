import type { FieldViolation, InvalidReason } from "@idmint/core";
import type { Placement } from "../placement.ts";
import type { RedisSnowflakeDraft } from "./redis-snowflake.ts";
import type { SegmentDraft } from "./segment.ts";
import type { SequenceDraft } from "./sequence.ts";
import type { SnowflakeDraft } from "./snowflake.ts";
import type { TicketDraft } from "./ticket.ts";
import type { ObjectIdDraft, UuidDraft } from "./uuid.ts";

/** Settings of a kind as a caller wrote them. */
export type KindDraft =
  | SegmentDraft
  | SequenceDraft
  | RedisSnowflakeDraft
  | TicketDraft
  | SnowflakeDraft
  | UuidDraft
  | ObjectIdDraft;

/** What the settings of a kind are checked against, and where their violations go. */
export interface KindContext {
  readonly name: string;
  readonly ceiling: bigint;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  /** Where a new tag would count; undefined: the tag has its place already. */
  readonly placement: Placement | undefined;
  readonly violations: FieldViolation[];
}

/** Notes a violation unless all is well. */
export function check(
  { violations }: Pick<KindContext, "violations">,
  isGood: boolean,
  field: string,
  description: string,
  reason: InvalidReason,
): void {
  if (!isGood) violations.push({ field, description, reason });
}

export function checkStart(context: KindContext, field: string, start: bigint): void {
  const { ceiling } = context;
  // A ceiling that is wrong itself has its own violation.
  const isGood = start >= 1n && (start <= ceiling || ceiling < 1n);
  check(
    context,
    isGood,
    field,
    `must be 1 to the tag's ceiling, got ${start}`,
    "VALUE_OUT_OF_RANGE",
  );
}
