import type { Violation } from "../../../api/errors.ts";

/** What is wrong with a form: at its fields, and what belongs to none of them. */
export interface Placed {
  readonly byPath: ReadonlyMap<string, readonly string[]>;
  readonly others: readonly Violation[];
}

/**
 * Finds the field of a form that each violation is about. A server names fields from the request on (`tag.segment.min`); a
 * field of the form, or a message of it, has the rest.
 */
export function placed(
  violations: readonly Pick<Violation, "description" | "field">[],
  paths: readonly string[],
): Placed {
  const byPath = new Map<string, string[]>();
  const others: Violation[] = [];
  for (const { field, description } of violations) {
    const path = field.replace(/^tag\./u, "");
    if (!paths.includes(path)) {
      others.push({ field, description, reason: "" });
      continue;
    }
    const texts = byPath.get(path) ?? [];
    byPath.set(path, texts.includes(description) ? texts : [...texts, description]);
  }
  return { byPath, others };
}
