import { type KindName, specOf } from "@idmint/core/kinds";
import type { TagJson } from "./tag-values.ts";

/** An id as DecodeId and LookupId take it: always text here, since a number of JavaScript loses its last digits. */
export type IdValue = { readonly id: string } | { readonly text: string };

const MAX_ID = 2n ** 63n - 1n;

/** Whether the ids of a tag are text, and no numbers. */
export function answersText({ format }: Pick<TagJson, "format">, kind: KindName): boolean {
  return (format ?? undefined) !== undefined || specOf({ kind }).ids === "text";
}

/** What was typed, as a tag of such ids takes it. What is no number is sent as text: the server says what the ids are. */
export function idValue(typed: string, isText: boolean): IdValue {
  const text = typed.trim();
  const isNumber = !isText && /^\d{1,19}$/u.test(text) && BigInt(text) <= MAX_ID;
  return isNumber ? { id: text } : { text };
}
