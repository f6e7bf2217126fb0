import { invalidFields, type Tag, type TagChange, type TagKind } from "@idmint/core";
import { isSameSequence } from "./kinds/sequence.ts";
import { isSameSnowflake } from "./kinds/snowflake.ts";
import { settingsOf, type TagDraft } from "./tag-settings.ts";
import type { TextPorts } from "./tag-text.ts";
import { merged } from "./update-mask.ts";

/** The change a mask asks for, validated as a whole with what stays. `maskViolations` found nothing in the mask. */
export function changeOf(
  old: Tag,
  draft: TagDraft,
  paths: readonly string[],
  { nowMs, texts }: { readonly nowMs: number; readonly texts: TextPorts },
): TagChange {
  const made = settingsOf(merged(old, draft, paths), {
    nowMs,
    placement: undefined,
    texts,
    keys: old.unguessable?.keys ?? [],
  });
  if ("violations" in made) throw invalidFields(made.violations);
  const { description, order, ceiling, kind, format, unguessable } = made.settings;
  const onlyIfUnissued =
    order !== old.order || ceiling !== old.ceiling || !isSameButForTuning(kind, old.kind);
  const written = {
    ...(format === undefined ? {} : { format }),
    ...(unguessable === undefined ? {} : { unguessable }),
  };
  return { description, settings: { order, ceiling, kind }, texts: written, onlyIfUnissued };
}

/** Whether nothing differs but what may change after the first id. */
function isSameButForTuning(one: TagKind, other: TagKind): boolean {
  if (one.kind === "segment" && other.kind === "segment") return one.start === other.start;
  if (one.kind === "sequence" && other.kind === "sequence") return isSameSequence(one, other);
  if (one.kind === "snowflake" && other.kind === "snowflake") return isSameSnowflake(one, other);
  // No path leads into the other kinds.
  return one.kind === other.kind;
}
