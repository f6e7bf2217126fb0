import { specOf, type TagKind } from "@idmint/core/kinds";
import type { SourceOf } from "./kind.ts";
import { objectIds } from "./object-id.ts";
import { type TextIds, type TextMakers, TextSource } from "./text-source.ts";
import { uuids } from "./uuid.ts";

/** Every kind whose ids are text. */
type TextName = "object_id" | "uuid";
export type TextKind = Extract<TagKind, { readonly kind: TextName }>;

type AllTextIds = {
  readonly [Name in TextName]: TextIds<Extract<TextKind, { readonly kind: Name }>>;
};

/** How ids of each kind are made that are text. */
function textIds({ uuid, objectId }: TextMakers): AllTextIds {
  return { uuid: uuids(uuid), object_id: objectIds(objectId) };
}

/** How a server makes the sources of these kinds. */
export function textSources(makers: TextMakers): {
  readonly [Name in TextName]: SourceOf<Name>;
} {
  const all = textIds(makers);
  return {
    uuid: ({ kind }) => new TextSource(kind, all.uuid),
    object_id: ({ kind }) => new TextSource(kind, all.object_id),
  };
}

export function isTextKind(kind: TagKind): kind is TextKind {
  return specOf(kind).ids === "text";
}

/** One id; `name` is for kinds whose ids are made of names. */
export function exampleText(makers: TextMakers, kind: TextKind, name: string): string {
  return (textIds(makers)[kind.kind] as TextIds<TextKind>).next(kind, name);
}
