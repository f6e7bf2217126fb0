// Kinds and values as they are typed and shown.
import { KIND_NAMES, type KindName } from "@idmint/core/kinds";
import type { Tag } from "@idmint/proto";

/** Kinds, by the word that is typed after --kind. */
export const KIND_WORDS: Readonly<Record<string, KindName>> = Object.fromEntries(
  KIND_NAMES.map((name) => [wordOf(name), name]),
);

/** A kind of the API as it is typed after --kind. */
export function kindWord(kind: NonNullable<Tag["kind"]>["$case"] | undefined): string {
  return kind?.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`) ?? "unknown";
}

/** A kind, or a value of an enum, as it is typed. */
export function wordOf(value: string): string {
  return value.toLowerCase().replaceAll("_", "-");
}
