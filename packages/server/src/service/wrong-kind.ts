import { IdmintError, type ObjectIdKind, type UuidKind } from "@idmint/core";
import type { Entry } from "./entries.ts";
import { TagText } from "./tag-text.ts";

/**
 * Why the ids of a tag are not handed out to be issued elsewhere. For SDKs the metadata say what is right for it:
 * - `kind`: the tag's kind; segment when its ids are written by a format or a key, which only servers do;
 * - `text`: "true" when ids are text;
 * - `max_count`: most ids of one call, where that is less than of others;
 * - `version`, `domain`, `number`, `namespace`, `variant`: the settings of kinds uuid and object_id.
 */
export function wrongKind(entry: Entry, countAsList: number): IdmintError {
  const { name, rules, text } = entry;
  const { kind } = rules;
  const why =
    kind.kind === "segment"
      ? `ids of tag "${name}" are written by a format or a key, which only servers do`
      : `tag "${name}" is of kind ${kind.kind}, and only ids of kind segment are handed out to be issued elsewhere`;
  const metadata: Record<string, string> = { tag: name, kind: kind.kind };
  if (text instanceof TagText) {
    const most = text.isText ? Math.min(text.maxCount, countAsList) : text.maxCount;
    if (text.isText) metadata["text"] = "true";
    metadata["max_count"] = String(most);
  }
  if (kind.kind === "uuid") Object.assign(metadata, uuidSettings(kind));
  if (kind.kind === "object_id") Object.assign(metadata, objectIdSettings(kind));
  return new IdmintError("WRONG_KIND", `${why}; use GenerateId or GenerateIds`, { metadata });
}

function uuidSettings(kind: UuidKind): Record<string, string> {
  const settings = { text: "true", version: String(kind.version) };
  if ("namespace" in kind) return { ...settings, namespace: kind.namespace };
  if ("domain" in kind) return { ...settings, domain: kind.domain, number: String(kind.number) };
  return settings;
}

function objectIdSettings({ variant }: ObjectIdKind): Record<string, string> {
  return { text: "true", variant };
}
