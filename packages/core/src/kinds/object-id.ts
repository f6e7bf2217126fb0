import { MAX_TEXT_AGE_MS } from "../limits.ts";
import { oneOf } from "./row.ts";
import { settling } from "./settling.ts";
import type { FieldsOf, KindSpec } from "./spec.ts";

/** Settings of a tag of kind object_id, defaults filled in. */
export interface ObjectIdKind {
  readonly kind: "object_id";
  readonly variant: "CLASSIC" | "MACHINE_PROCESS";
}

export interface ObjectIdDraft {
  readonly kind: "object_id";
  readonly variant?: ObjectIdKind["variant"] | "UNKNOWN" | undefined;
}

/** An ObjectId begins with 32 bits of seconds since 1970. */
const TIME_END_MS = 2 ** 32 * 1_000;
const VARIANTS: readonly ObjectIdKind["variant"][] = ["CLASSIC", "MACHINE_PROCESS"];

const FIELDS: FieldsOf<ObjectIdDraft> = {
  variant: {
    type: "enum",
    enum: { name: "OBJECT_ID_VARIANT", values: VARIANTS },
    default: "CLASSIC",
    change: "never",
    help: "what tells processes apart, random bytes (classic) or machine and process",
  },
};

export const OBJECT_ID: KindSpec<"object_id", ObjectIdDraft, ObjectIdKind> = {
  name: "object_id",
  orders: ["UNORDERED"],
  whyOrders: "each server makes them by itself",
  ids: "text",
  composed: undefined,
  timeEndMs: () => TIME_END_MS,
  isOfNames: () => false,
  issuesToFloor: false,
  reportsIssued: true,
  isLayout: false,
  fields: FIELDS,
  whyNoCeiling: "its ids are text",
  settle: (draft, context) => ({
    kind: "object_id",
    variant: settling(draft, FIELDS, context).value("variant"),
  }),
  draftOf: (settings) => settings,
  row: {
    write: ({ variant }) => JSON.stringify({ variant }),
    read: (json) => ({ kind: "object_id", variant: oneOf(json["variant"], VARIANTS) }),
  },
  countedIn: () => "nothing",
  memoryMs: () => MAX_TEXT_AGE_MS,
  mayFollow: () => undefined,
};
