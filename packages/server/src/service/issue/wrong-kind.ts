import { IdmintError } from "@idmint/core";
import type { TagKind } from "@idmint/core/kinds";
import { comesFrom, plainText, specOf, valuesOf } from "@idmint/core/kinds";
import type { Entry } from "./entries.ts";
import { TagText } from "./tag-text.ts";

/**
 * Why the ids of a tag are not handed out to be issued elsewhere. For SDKs the metadata say what is right for it:
 * - `kind`: the tag's kind; segment when its ids are written by a format or a key, which only servers do;
 * - `text`: "true" when ids are text;
 * - `max_count`: most ids of one call, where that is less than of others;
 * - the settings of kinds whose ids nobody counts, by their names in the API, such as `version` and `variant`.
 */
export function wrongKind(entry: Entry, countAsList: number): IdmintError {
  const { name, rules, text } = entry;
  const { kind } = rules;
  const why = comesFrom(kind, "segments")
    ? `ids of tag "${name}" are written by a format or a key, which only servers do`
    : `tag "${name}" is of kind ${kind.kind}, and only ids of kind segment are handed out to be issued elsewhere`;
  const metadata: Record<string, string> = { tag: name, kind: kind.kind };
  if (text instanceof TagText) {
    const most = text.isText ? Math.min(text.maxCount, countAsList) : text.maxCount;
    if (text.isText) metadata["text"] = "true";
    metadata["max_count"] = String(most);
  }
  if (specOf(kind).ids === "text") metadata["text"] = "true";
  // Ids that nobody counts can be made by an SDK.
  if (specOf(kind).countedIn(kind) === "nothing") Object.assign(metadata, settingsOf(kind));
  return new IdmintError("WRONG_KIND", `${why}; use GenerateId or GenerateIds`, { metadata });
}

function settingsOf(kind: TagKind): Record<string, string> {
  const values = Object.entries(valuesOf(kind)).filter(([name]) => name in specOf(kind).fields);
  const set = values.filter(([, value]) => value !== undefined);
  const texts = set.map(([name, value]) => [name, plainText(value)] as const);
  return Object.fromEntries(texts);
}
