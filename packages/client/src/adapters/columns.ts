// What the adapters of ORMs share that can wait for ids: which tag the ids of a model come from, and as what.
import { type FieldViolation, invalidFields } from "@idmint/core";
import type { IdClient, IdTag } from "../api.ts";

/** The tag that the ids of a model come from. A name alone is that of a tag, for the field `id`. */
export type IdSourceOfModel = string | { readonly tag: string; readonly field: string };

/** Tags by the name of a model. */
export type IdSources = Readonly<Record<string, IdSourceOfModel>>;

/** As what a field keeps its ids. "decimal": text, and only of ids that are numbers. */
export type IdForm = "bigint" | "decimal" | "number" | "string";

/** A field that gets ids. */
export interface IdColumn {
  readonly field: string;
  readonly next: () => Promise<bigint | number | string>;
}

/** What a field is for ids: as what it keeps them, or why it cannot. */
export type FormOf = (model: string, field: string) => IdForm | { readonly fault: string };

/** The fields that get ids, by model. Throws INVALID_ARGUMENT that names every model or field that cannot. */
export function idColumns(
  client: IdClient,
  sources: IdSources,
  formOf: FormOf,
): ReadonlyMap<string, IdColumn> {
  const violations: FieldViolation[] = [];
  const columns = new Map<string, IdColumn>();
  for (const [model, source] of Object.entries(sources)) {
    const { tag, field } = typeof source === "string" ? { tag: source, field: "id" } : source;
    const form = formOf(model, field);
    if (typeof form === "object") {
      violations.push({ field: `${model}.${field}`, description: form.fault });
      continue;
    }
    const ids = client.tag(tag);
    columns.set(model, { field, next: () => NEXT[form](ids) });
  }
  if (violations.length > 0) throw invalidFields(violations);
  return columns;
}

const NEXT: Readonly<Record<IdForm, (tag: IdTag) => Promise<bigint | number | string>>> = {
  bigint: (tag) => tag.next(),
  decimal: async (tag) => String(await tag.next()),
  number: (tag) => tag.nextNumber(),
  string: (tag) => tag.nextString(),
};
