import type { ObjectIdKind, TagKind, UuidKind } from "@idmint/core/kinds";
import { specOf } from "@idmint/core/kinds";
import { objectIds } from "./object-id.ts";
import type { TextIds, TextMakers } from "./text-source.ts";
import { uuids } from "./uuid.ts";

/** Every kind whose ids are text. */
type TextKind = ObjectIdKind | UuidKind;

type AllTextIds = {
  readonly [Name in TextKind["kind"]]: TextIds<Extract<TextKind, { readonly kind: Name }>>;
};

/** How ids of each kind are made that are text. */
export function textIds({ uuid, objectId }: TextMakers): AllTextIds {
  return { uuid: uuids(uuid), object_id: objectIds(objectId) };
}

export function isTextKind(kind: TagKind): kind is TextKind {
  return specOf(kind).ids === "text";
}

/** One id; `name` is for kinds whose ids are made of names. */
export function exampleText(makers: TextMakers, kind: TextKind, name: string): string {
  return (textIds(makers)[kind.kind] as TextIds<TextKind>).next(kind, name);
}
