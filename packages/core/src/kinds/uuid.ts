import type { DceDomain } from "../uuid/dce-state.ts";
import { namespaceOf } from "../uuid/decode.ts";
import { MAX_TEXT_AGE_MS } from "../limits.ts";
import { integerFrom, oneOf, textFrom } from "./row.ts";
import { type Settling, settling } from "./settling.ts";
import type { FieldsOf, Json, KindContext, KindSpec } from "./spec.ts";

/** Settings of a tag of kind uuid, defaults filled in. */
export type UuidKind =
  | { readonly kind: "uuid"; readonly version: 1 | 4 | 6 | 7 }
  | {
      readonly kind: "uuid";
      readonly version: 2;
      readonly domain: DceDomain;
      /** 0 … 2^32 − 1. */
      readonly number: number;
    }
  | {
      readonly kind: "uuid";
      readonly version: 3 | 5;
      /** A UUID in lower case, whatever it was named by. */
      readonly namespace: string;
    };

export interface UuidDraft {
  readonly kind: "uuid";
  readonly version?: number | undefined;
  readonly namespace?: string | undefined;
  readonly domain?: DceDomain | "UNKNOWN" | undefined;
  readonly number?: number | undefined;
}

const VERSIONS = [1, 2, 3, 4, 5, 6, 7] as const;
const DOMAINS: readonly DceDomain[] = ["PERSON", "GROUP", "ORG"];

const FIELDS: FieldsOf<UuidDraft> = {
  version: {
    type: "int32",
    range: [1, 7],
    change: "never",
    help: "version of the UUIDs (required)",
  },
  namespace: {
    type: "text",
    change: "never",
    help: "of versions 3 and 5: namespace of the names, a UUID or DNS, URL, OID, X500",
  },
  domain: {
    type: "enum",
    enum: { name: "DCE_DOMAIN", values: DOMAINS },
    default: "PERSON",
    change: "never",
    help: "of version 2: kind of the number",
  },
  number: {
    type: "uint32",
    range: [0, 2 ** 32 - 1],
    change: "never",
    help: "of version 2: the number of the person, group or organization (0 unless set)",
  },
};

function settle(draft: UuidDraft, context: KindContext): UuidKind {
  const kind = "uuid";
  const of = settling(draft, FIELDS, context);
  const version = VERSIONS.find((each) => each === draft.version);
  of.check(
    version !== undefined,
    "version",
    draft.version === undefined ? "is required: 1 to 7" : `must be 1 to 7, got ${draft.version}`,
    draft.version === undefined ? "FIELD_REQUIRED" : "UNKNOWN_VALUE",
  );
  const namespace = namespaceFrom(draft, of);
  const dce = dceFrom(draft, of);
  // The draft is refused where the version is none.
  if (version === undefined) return { kind, version: 4 };
  if (version === 2) return { kind, version, ...dce };
  return version === 3 || version === 5 ? { kind, version, namespace } : { kind, version };
}

function namespaceFrom(
  { version, namespace = "" }: UuidDraft,
  { check }: Settling<UuidDraft>,
): string {
  if (version !== 3 && version !== 5) {
    check(namespace === "", "namespace", "must be empty except for versions 3 and 5");
    return "";
  }
  const uuid = namespaceOf(namespace);
  const what = "a UUID, or one of DNS, URL, OID, X500";
  const description = namespace === "" ? `is required: ${what}` : `must be ${what}`;
  const reason = namespace === "" ? "FIELD_REQUIRED" : "UNKNOWN_VALUE";
  check(uuid !== undefined, "namespace", description, reason);
  return uuid ?? "";
}

function dceFrom(
  { version, domain, number }: UuidDraft,
  { given, value, check }: Settling<UuidDraft>,
): { readonly domain: DceDomain; readonly number: number } {
  if (version === 2) return { domain: value("domain"), number: given("number") ?? 0 };
  const why = "must be empty except for version 2";
  check(domain === undefined, "domain", why);
  check(number === undefined, "number", why);
  return { domain: "PERSON", number: 0 };
}

function write(kind: UuidKind): string {
  if (kind.version === 2) {
    const { version, domain, number } = kind;
    return JSON.stringify({ version, domain, number });
  }
  const { version } = kind;
  return "namespace" in kind
    ? JSON.stringify({ version, namespace: kind.namespace })
    : JSON.stringify({ version });
}

function read(json: Json): UuidKind {
  const kind = "uuid";
  const version = oneOf(json["version"], VERSIONS);
  if (version === 2) {
    const domain = oneOf(json["domain"], DOMAINS);
    return { kind, version, domain, number: integerFrom(json["number"], 0) };
  }
  if (version !== 3 && version !== 5) return { kind, version };
  return { kind, version, namespace: textFrom(json["namespace"]) };
}

export const UUID: KindSpec<"uuid", UuidDraft, UuidKind> = {
  name: "uuid",
  orders: ["UNORDERED"],
  whyOrders: "each server makes them by itself",
  ids: "text",
  composed: undefined,
  // Some versions hold a time, which lasts for thousands of years.
  timeEndMs: () => undefined,
  isOfNames: (settings) => "namespace" in settings,
  issuesToFloor: false,
  reportsIssued: true,
  isLayout: false,
  fields: FIELDS,
  whyNoCeiling: "its ids are text",
  settle,
  draftOf: (settings) => settings,
  row: { write, read },
  countedIn: () => "nothing",
  memoryMs: () => MAX_TEXT_AGE_MS,
  mayFollow: () => undefined,
};
