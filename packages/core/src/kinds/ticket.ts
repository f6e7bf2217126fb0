import { idFrom, integerFrom, textFrom } from "./row.ts";
import { settling } from "./settling.ts";
import type { FieldsOf, KindContext, KindSpec } from "./spec.ts";
import { START, startOf } from "./start.ts";

/** Most residue classes of a tag. */
export const MAX_SLOTS = 1_024;

/** Settings of a tag of kind ticket, defaults filled in. */
export interface TicketKind {
  readonly kind: "ticket";
  /** First id; 1 … ceiling. */
  readonly start: bigint;
  /** Number of residue classes; 1 … 1,024. */
  readonly slots: number;
  /**
   * Names the slots in the ticket databases, `tag.random`. They are made before the tag is, so that no server ever makes
   * them again; a tag made over a tombstone keeps those of the tombstone.
   */
  readonly slotsId: string;
}

export interface TicketDraft {
  readonly kind: "ticket";
  readonly start?: bigint | undefined;
  readonly slots?: number | undefined;
  readonly slots_id?: string | undefined;
}

const FIELDS: FieldsOf<TicketDraft> = {
  start: { ...START, change: "never" },
  slots: {
    type: "int32",
    default: 60,
    range: [1, MAX_SLOTS],
    change: "never",
    help: "number of residue classes, and so of databases at most",
  },
  slots_id: {
    type: "text",
    role: "row-only",
    change: "never",
    help: "name of its slots in the ticket databases",
  },
};

/** The settings, without slots (`slotsId` empty) for a tag that is to be made. */
function settle(draft: TicketDraft, context: KindContext): TicketKind {
  const of = settling(draft, FIELDS, context);
  const [start, slots] = [startOf(of, context), of.value("slots")];
  of.check(
    draft.slots_id !== undefined || context.placement?.hasTicketDatabases === true,
    "",
    "cannot be made here: this server is not configured with ticket.urls",
    "NOT_CONFIGURED",
  );
  return { kind: "ticket", start, slots, slotsId: draft.slots_id ?? "" };
}

export const TICKET: KindSpec<"ticket", TicketDraft, TicketKind> = {
  name: "ticket",
  orders: ["UNORDERED"],
  whyOrders: "its databases issue beside each other",
  ids: "number",
  composed: undefined,
  timeEndMs: () => undefined,
  isOfNames: () => false,
  issuesToFloor: false,
  reportsIssued: false,
  isLayout: false,
  fields: FIELDS,
  settle,
  draftOf: ({ slotsId, ...same }) => ({ ...same, slots_id: slotsId }),
  row: {
    write: ({ start, slots, slotsId }) => JSON.stringify({ start: String(start), slots, slotsId }),
    read: (json) => ({
      kind: "ticket",
      start: idFrom(json["start"]),
      slots: integerFrom(json["slots"], 1),
      slotsId: textFrom(json["slotsId"]),
    }),
  },
  countedIn: () => "tickets",
  memoryMs: () => 0,
  // The floor says nothing of what its databases issued.
  mayFollow: ({ slots }, next) => {
    if (next?.slots === slots) return undefined;
    const why = "a deleted ticket tag has this name, and its ids would be repeated";
    const description = `must be ${slots}: ${why}; take another name`;
    return { field: "tag.ticket.slots", description };
  },
  // A name has one set of slots for ever, which go on where they are. Others would begin below them.
  inherit: (settings, { slotsId }) => ({ ...settings, slotsId }),
};
