import type { ObjectIdMaker } from "@idmint/core";
import type { ObjectIdKind } from "@idmint/core/kinds";
import { assertNoName, type TextIds } from "./text-source.ts";

/** The ObjectIds of a server. */
export function objectIds(maker: ObjectIdMaker): TextIds<ObjectIdKind> {
  return {
    assertName: (_kind, _count, name) => assertNoName(name),
    next: ({ variant }) => maker.next(variant),
  };
}
