// Kinds and values as they are typed and shown.
import { KIND_NAMES, type KindName, wordOf } from "@idmint/core/kinds";
import type { Tag } from "@idmint/proto";

/** Kinds, by the word that is typed after --kind. */
export const KIND_WORDS: Readonly<Record<string, KindName>> = Object.fromEntries(
  KIND_NAMES.map((name) => [wordOf(name), name]),
);

/** A kind of the API as it is typed after --kind. */
export function kindWord(kind: NonNullable<Tag["kind"]>["$case"] | undefined): string {
  return kind?.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`) ?? "unknown";
}
