import {
  comesFrom,
  countsToFloor,
  type Json,
  KIND_NAMES,
  type KindName,
  KINDS,
  specOf,
  type TagKind,
} from "@idmint/core/kinds";
import { schemaMismatch } from "./failures.ts";

/** Settings of a kind as the column `settings` has them: JSON without spaces, its fields in a fixed order. */
export function settingsText(kind: TagKind): string {
  return specOf(kind).row.write(kind);
}

/**
 * The settings of a row. Throws SCHEMA_MISMATCH for a text that no release wrote.
 *
 * INVARIANT: what is read is what was written. Every field is checked by itself. The whole is checked by writing it
 * again: a field too many, of another type or in another place makes another text.
 */
export function settingsFromText(tag: string, kind: string, text: string): TagKind {
  let settings: TagKind | undefined;
  try {
    const json = JSON.parse(text) as Json;
    if (Object.hasOwn(KINDS, kind)) settings = KINDS[kind as KindName].row.read(json);
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
  }
  if (settings !== undefined && settingsText(settings) === text) return settings;
  throw schemaMismatch(
    `the row of tag "${tag}" was changed by hand or written by another release: it is a ${kind} with the settings ${text}`,
  );
}

/** Kinds as a list of SQL. */
function listed(isListed: (of: { readonly kind: KindName }) => boolean): string {
  return KIND_NAMES.filter((kind) => isListed({ kind }))
    .map((kind) => `'${kind}'`)
    .join(", ");
}

/** Kinds whose unused ids go back. */
export const SEGMENTS: string = listed((kind) => comesFrom(kind, "segments"));
/** Kinds whose workers have leases. */
export const LEASING: string = listed((kind) => comesFrom(kind, "lease"));
/** Kinds whose ids the store grants, or bounds. */
export const GRANTED: string = listed(countsToFloor);
