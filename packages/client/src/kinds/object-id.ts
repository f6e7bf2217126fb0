import type { TagContext } from "../tag-context.ts";
import type { IdSource, IdSourceRequest } from "./id-source.ts";
import { localTextMakers } from "./local-text-makers.ts";
import { hasNoNames } from "./refusals.ts";
import { LocalTextIds } from "./local-text-ids.ts";

/** The ids of a tag of kind object_id. */
export function objectIds(
  { tag, facts }: IdSourceRequest,
  { clock }: TagContext,
): IdSource | "unknown" {
  const { variant } = facts.settings;
  if (variant !== "CLASSIC" && variant !== "MACHINE_PROCESS") return "unknown";
  const next = (name: string | undefined): string => {
    if (name !== undefined) throw hasNoNames(tag);
    return localTextMakers().objectId.next(variant);
  };
  return new LocalTextIds({ tag, kind: "object_id", next }, clock);
}
