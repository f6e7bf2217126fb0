import { invalidField } from "@idmint/core";
import { Confirmation } from "./confirmation.ts";
import type { UuidKind } from "@idmint/core/kinds";
import type { IdSource, KindFacts, IdSourceRequest } from "./id-source.ts";
import type { TagContext } from "../tag-context.ts";
import { hasNoNames } from "./refusals.ts";
import { LocalTextIds } from "./local-text-ids.ts";

/** Longest name of a UUID of version 3 or 5, in bytes of UTF-8; servers have the same bound. */
const MAX_NAME_BYTES = 4_096;
const PLAIN_VERSIONS = [1, 4, 6, 7] as const;

/** The ids of a tag of kind uuid. */
export function uuids(request: IdSourceRequest, context: TagContext): IdSource | "unknown" {
  const { tag, facts } = request;
  const { textMakers } = context;
  const settings = settingsOf(facts);
  if (settings === undefined) return "unknown";
  const next = (name: string | undefined): string => {
    assertName(tag, settings, name);
    return textMakers().uuid.next(settings, name);
  };
  const confirmation = new Confirmation(request, context);
  return new LocalTextIds({ tag, kind: "uuid", next, confirmation }, context.clock);
}

/** Undefined for settings that this SDK does not know. */
function settingsOf({ settings }: KindFacts): UuidKind | undefined {
  const kind = "uuid";
  const { version, domain, number, namespace = "" } = settings;
  if (version === "3" || version === "5") {
    return { kind, version: version === "3" ? 3 : 5, namespace };
  }
  if (version === "2") {
    if (domain !== "PERSON" && domain !== "GROUP" && domain !== "ORG") return undefined;
    return { kind, version: 2, domain, number: Number(number) };
  }
  const plain = PLAIN_VERSIONS.find((each) => String(each) === version);
  return plain === undefined ? undefined : { kind, version: plain };
}

function assertName(tag: string, settings: UuidKind, name: string | undefined): void {
  if (!("namespace" in settings)) {
    if (name !== undefined) throw hasNoNames(tag);
    return;
  }
  if (name === undefined || name === "") {
    const what = `the name that an id of version ${settings.version} is made from`;
    throw invalidField("name", `is required: ${what}; call nextString({ name })`);
  }
  const bytes = Buffer.byteLength(name);
  if (bytes <= MAX_NAME_BYTES) return;
  throw invalidField("name", `must be at most ${MAX_NAME_BYTES} bytes, got ${bytes}`);
}
