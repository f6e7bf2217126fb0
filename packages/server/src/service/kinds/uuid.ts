import {
  type DceDomain,
  MAX_ID,
  namespaceOf,
  type ObjectIdKind,
  type UuidKind,
} from "@idmint/core";
import { check, type KindContext } from "./draft.ts";

const MAX_NUMBER = 2 ** 32 - 1;

export interface UuidDraft {
  readonly kind: "uuid";
  readonly version: number;
  readonly namespace: string;
  /** `undefined`: none was named; `UNKNOWN`: a value this server does not know. */
  readonly domain: DceDomain | "UNKNOWN" | undefined;
  readonly number: number;
}

export function uuidOf(draft: UuidDraft, context: KindContext): UuidKind {
  const { version } = draft;
  const isKnown = Number.isInteger(version) && version >= 1 && version <= 7;
  check(
    context,
    isKnown,
    "tag.uuid.version",
    `is required: 1 to 7, got ${version}`,
    version === 0 ? "FIELD_REQUIRED" : "UNKNOWN_VALUE",
  );
  checkNoCeiling(context, "uuid");
  const kind = "uuid";
  const namespace = namespaceFrom(draft, context);
  const { domain, number } = dceFrom(draft, context);
  if (version === 2) return { kind, version, domain, number };
  if (version === 3 || version === 5) return { kind, version, namespace };
  return { kind, version: version as 1 | 4 | 6 | 7 };
}

export function uuidDraftOf(kind: UuidKind): UuidDraft {
  return {
    kind: "uuid",
    version: kind.version,
    namespace: kind.version === 3 || kind.version === 5 ? kind.namespace : "",
    domain: kind.version === 2 ? kind.domain : undefined,
    number: kind.version === 2 ? kind.number : 0,
  };
}

function namespaceFrom({ version, namespace }: UuidDraft, context: KindContext): string {
  const field = "tag.uuid.namespace";
  if (version !== 3 && version !== 5) {
    check(
      context,
      namespace === "",
      field,
      "must be empty except for versions 3 and 5",
      "FIELD_CONFLICT",
    );
    return "";
  }
  const uuid = namespaceOf(namespace);
  const what = "a UUID, or one of DNS, URL, OID, X500";
  const description = namespace === "" ? `is required: ${what}` : `must be ${what}`;
  check(
    context,
    uuid !== undefined,
    field,
    description,
    namespace === "" ? "FIELD_REQUIRED" : "UNKNOWN_VALUE",
  );
  return uuid ?? "";
}

function dceFrom(
  { version, domain, number }: UuidDraft,
  context: KindContext,
): { readonly domain: DceDomain; readonly number: number } {
  if (version !== 2) {
    const why = "must be empty except for version 2";
    check(context, domain === undefined, "tag.uuid.domain", why, "FIELD_CONFLICT");
    check(context, number === 0, "tag.uuid.number", why, "FIELD_CONFLICT");
    return { domain: "PERSON", number: 0 };
  }
  check(
    context,
    domain !== "UNKNOWN",
    "tag.uuid.domain",
    "must be one of DCE_DOMAIN_PERSON, DCE_DOMAIN_GROUP, DCE_DOMAIN_ORG, or empty",
    "UNKNOWN_VALUE",
  );
  const isNumber = Number.isInteger(number) && number >= 0 && number <= MAX_NUMBER;
  check(
    context,
    isNumber,
    "tag.uuid.number",
    `must be 0 to ${MAX_NUMBER}, got ${number}`,
    "VALUE_OUT_OF_RANGE",
  );
  return { domain: domain === "UNKNOWN" ? "PERSON" : (domain ?? "PERSON"), number };
}

export interface ObjectIdDraft {
  readonly kind: "object_id";
  /** `undefined`: the default; `UNKNOWN`: a value this server does not know. */
  readonly variant: ObjectIdKind["variant"] | "UNKNOWN" | undefined;
}

export function objectIdOf({ variant }: ObjectIdDraft, context: KindContext): ObjectIdKind {
  check(
    context,
    variant !== "UNKNOWN",
    "tag.object_id.variant",
    "must be one of OBJECT_ID_VARIANT_CLASSIC, OBJECT_ID_VARIANT_MACHINE_PROCESS, or empty",
    "UNKNOWN_VALUE",
  );
  checkNoCeiling(context, "object_id");
  return { kind: "object_id", variant: variant === "MACHINE_PROCESS" ? variant : "CLASSIC" };
}

function checkNoCeiling(context: KindContext, kind: string): void {
  const isDefault = context.ceiling === MAX_ID || context.ceiling < 1n;
  check(
    context,
    isDefault,
    "tag.ceiling",
    `must be empty with kind ${kind}: its ids are text`,
    "FIELD_CONFLICT",
  );
}
