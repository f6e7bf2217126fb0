import type { TagKind } from "@idmint/core/kinds";
import type { TagSettings } from "@idmint/core/server";
import {
  type Field,
  flatFields,
  plainText,
  specOf,
  type Value,
  valueAt,
  valuesOf,
} from "@idmint/core/kinds";

/** A setting that two tags have differently: its path in the API, and both values as JSON has them. */
export interface Difference {
  readonly field: string;
  readonly present: string;
  readonly wanted: string;
}

/** The settings of an existing tag that differ from those that were asked for. */
export function differencesOf(present: TagSettings, wanted: TagSettings): readonly Difference[] {
  const [one, other] = [fieldsOf(present), fieldsOf(wanted)];
  const fields = new Set([...Object.keys(one), ...Object.keys(other)]);
  // Settings of two kinds cannot be compared.
  const kind = present.kind.kind === wanted.kind.kind ? undefined : "kind";
  return [...fields]
    .filter(
      (field) => kind === undefined || !field.includes(".") || /^(format|unguess)/.test(field),
    )
    .map((field) => ({ field, present: one[field] ?? "none", wanted: other[field] ?? "none" }))
    .filter((each) => each.present !== each.wanted)
    .map((each) => (each.field === KEY ? { ...each, present: "one", wanted: "another" } : each));
}

/** The path of a difference that is told without its values. */
const KEY = "unguessable.key";

type Fields = Readonly<Record<string, string>>;

function fieldsOf({ description, order, ceiling, kind, format, unguessable }: TagSettings): Fields {
  return {
    kind: kind.kind,
    description: JSON.stringify(description),
    order,
    ceiling: String(ceiling),
    ...named(kind.kind, kindFields(kind)),
    ...(format === undefined ? {} : { "format.template": JSON.stringify(format.template) }),
    ...(unguessable === undefined
      ? {}
      : named("unguessable", {
          key_id: unguessable.keyId,
          key_digits: unguessable.keyDigits,
          key: unguessable.keys.map(({ keyId, check }) => `${keyId}:${check}`).join(","),
        })),
  };
}

function named(prefix: string, fields: Readonly<Record<string, unknown>>): Fields {
  const set = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set.map(([name, value]) => [`${prefix}.${name}`, String(value)]));
}

/** The settings by their names in the API, without what servers choose and what follows. */
function kindFields(kind: TagKind): Readonly<Record<string, unknown>> {
  const values = valuesOf(kind);
  const shown = flatFields(specOf(kind).fields).filter(([, { role }]) => role === undefined);
  return Object.fromEntries(
    shown.map(([path, field]) => [path, textOf(field, valueAt(values, path))]),
  );
}

function textOf({ type }: Field, value: Value): string | undefined {
  if (value === undefined) return undefined;
  if (type === "duration") return `${(value as number) / 1_000}s`;
  return type === "time" ? new Date(value as number).toISOString() : plainText(value);
}
