// What an import makes of counts: tags, and the floors that they get. Pure.
import { type FieldViolation, IdmintError, MAX_ID, tagNameViolation } from "@idmint/core";
import { plain } from "../../../process/plain.ts";
import type { Count } from "./sources.ts";

/** A tag that takes over from one count, or from several of one name in several databases. */
export interface Target {
  readonly tag: string;
  readonly highest: bigint;
  /** `highest` and the gap: no id at or below it is issued by idmint. */
  readonly floor: bigint;
  readonly because: string;
}

export interface ImportOptions {
  /** Ids that the other maker may have given out since the dump. */
  readonly gap: bigint;
  /** Names of tags, by the names of the source. */
  readonly names: ReadonlyMap<string, string>;
  /** Only these names of the source; empty: all. */
  readonly only: readonly string[];
}

/** Throws an INVALID_ARGUMENT that names everything that cannot be imported. */
export function targetsOf(
  counts: readonly Count[],
  { gap, names, only }: ImportOptions,
): readonly Target[] {
  const violations: FieldViolation[] = [];
  const known = new Set(counts.map(({ name }) => name));
  for (const name of [...only, ...names.keys()]) {
    if (!known.has(name))
      violations.push({ field: plain(name), description: "is not in the source" });
  }
  const targets = new Map<string, Target>();
  for (const { name, highest, because } of counts) {
    if (only.length > 0 && !only.includes(name)) continue;
    const tag = names.get(name) ?? name;
    const floor = highest + gap;
    const violation = tagNameViolation(plain(tag), tag);
    if (violation !== undefined) {
      const description = `${violation.description}; give it a name with --name 'OLD=NEW'`;
      violations.push({ ...violation, description });
    } else if (floor >= MAX_ID) {
      const description = `would have a floor of ${floor}, and the highest id is ${MAX_ID}`;
      violations.push({ field: plain(name), description });
    }
    const other = targets.get(tag);
    if (other === undefined || other.highest < highest)
      targets.set(tag, { tag, highest, floor, because: plain(because) });
  }
  if (violations.length === 0) return [...targets.values()];
  const lines = violations.map(({ field, description }) => `${field} ${description}`);
  throw new IdmintError("INVALID_ARGUMENT", `nothing was changed\n${lines.join("\n")}`, {
    violations,
  });
}
