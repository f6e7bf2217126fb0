import { Confirmation } from "./confirmation.ts";
import type { TagContext } from "../tag-context.ts";
import type { IdSource, IdSourceRequest } from "./id-source.ts";
import { hasNoNames } from "./refusals.ts";
import { LocalTextIds } from "./local-text-ids.ts";

/** The ids of a tag of kind object_id. */
export function objectIds(request: IdSourceRequest, context: TagContext): IdSource | "unknown" {
  const { tag, facts } = request;
  const { textMakers } = context;
  const { variant } = facts.settings;
  if (variant !== "CLASSIC" && variant !== "MACHINE_PROCESS") return "unknown";
  const next = (name: string | undefined): string => {
    if (name !== undefined) throw hasNoNames(tag);
    return textMakers().objectId.next(variant);
  };
  const confirmation = new Confirmation(request, context);
  return new LocalTextIds({ tag, kind: "object_id", next, confirmation }, context.clock);
}
