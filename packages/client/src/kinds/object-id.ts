import type { TagContext } from "../tag-context.ts";
import type { KindIds, TagWish } from "./id-source.ts";
import { makers } from "./local-text-makers.ts";
import { hasNoNames } from "./refusals.ts";
import { TextIds } from "./local-text-ids.ts";

/** The ids of a tag of kind object_id. */
export function objectIds({ tag, facts }: TagWish, { clock }: TagContext): KindIds | "unknown" {
  const { variant } = facts.settings;
  if (variant !== "CLASSIC" && variant !== "MACHINE_PROCESS") return "unknown";
  const next = (name: string | undefined): string => {
    if (name !== undefined) throw hasNoNames(tag);
    return makers().objectId.next(variant);
  };
  return new TextIds({ tag, kind: "object_id", next }, clock);
}
