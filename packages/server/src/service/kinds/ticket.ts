import type { TicketKind } from "@idmint/core";
import { check, checkStart, type KindContext } from "./draft.ts";

/** Defaults and bounds of a ticket tag, as proto/idmint/v1/tag.proto documents them. */
const DEFAULT_START = 1n;
const DEFAULT_SLOTS = 60;
const MAX_SLOTS = 1_024;

export interface TicketDraft {
  readonly kind: "ticket";
  readonly start: bigint;
  readonly slots: number;
  /** Its slots in the databases, made already; undefined: they are to be made. */
  readonly slotsId: string | undefined;
}

/** The settings, without slots (`slotsId` empty) for a tag that is to be made. */
export function ticketOf(draft: TicketDraft, context: KindContext): TicketKind {
  const start = draft.start === 0n ? DEFAULT_START : draft.start;
  const slots = draft.slots === 0 ? DEFAULT_SLOTS : draft.slots;
  checkStart(context, "tag.ticket.start", start);
  check(
    context,
    slots >= 1 && slots <= MAX_SLOTS,
    "tag.ticket.slots",
    `must be 1 to ${MAX_SLOTS}, or 0 for the default, got ${slots}`,
    "VALUE_OUT_OF_RANGE",
  );
  check(
    context,
    draft.slotsId !== undefined || context.placement?.hasTicketDatabases === true,
    "tag.ticket",
    "cannot be made here: this server is not configured with ticket.urls",
    "INVALID_ARGUMENT",
  );
  return { kind: "ticket", start, slots, slotsId: draft.slotsId ?? "" };
}
