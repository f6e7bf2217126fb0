// A tag as the API answers it, in the words of the tables.
import {
  type Field,
  type Fields,
  type KindDraft,
  KIND_NAMES,
  type KindName,
  specOf,
  type TagKind,
  type Value,
  type Values,
} from "@idmint/core/kinds";
import { millisecondsOf } from "../../../api/errors.ts";
import type { ResponseOf } from "../../../api/json.ts";
import { camelCase } from "./draft.ts";
import { formFields, type FormValues } from "./fields.ts";
import { settledKind } from "./settle.ts";
import { textOf } from "./typed.ts";

export type TagJson = NonNullable<ResponseOf<"TagService", "getTag">["tag"]>;

/** The kind of a tag; undefined: one that this console does not know, of a newer server. */
export function kindOf(tag: TagJson): KindName | undefined {
  return KIND_NAMES.find((name) => messageOf(tag, name) !== undefined);
}

function messageOf(tag: TagJson, kind: KindName): Readonly<Record<string, unknown>> | undefined {
  const all = tag as unknown as Readonly<Record<string, Readonly<Record<string, unknown>> | null>>;
  return all[camelCase(kind)] ?? undefined;
}

/** The settings of a tag's kind. What is empty is left out. */
function valuesOfTag(tag: TagJson, kind: KindName): Values {
  return valuesFrom(specOf({ kind }).fields, messageOf(tag, kind) ?? {});
}

function valuesFrom(fields: Fields, message: Readonly<Record<string, unknown>>): Values {
  const entries = Object.entries(fields).flatMap(([name, field]) => {
    const value = valueFrom(field, message[camelCase(name)]);
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(entries);
}

function valueFrom({ type, enum: kinds, fields = {} }: Field, json: unknown): Value {
  if (json === undefined || json === null) return undefined;
  switch (type) {
    case "id":
      return json === "0" ? undefined : BigInt(json as string);
    case "int32":
    case "uint32":
      return json === 0 ? undefined : Number(json);
    case "text":
      return json === "" ? undefined : (json as string);
    case "bool":
      return json === true ? true : undefined;
    case "enum":
      return kinds?.values.find((value) => `${kinds.name}_${value}` === json);
    case "duration":
      return Math.round(millisecondsOf(json) ?? 0);
    case "time":
      return Date.parse(json as string);
    case "message":
      return valuesFrom(fields, json as Readonly<Record<string, unknown>>);
    default:
      return type satisfies never;
  }
}

/** The highest id that a tag may have issued; undefined where its floor does not say that. */
export function highestIdOf(tag: TagJson): string | undefined {
  const kind = kindOf(tag);
  return kind === undefined || specOf({ kind }).issuesToFloor ? tag.floor : undefined;
}

/** What follows from the settings of a tag; undefined: they are of a kind that this console does not know. */
export function ofSettings<Fact>(
  tag: TagJson,
  fact: (settings: TagKind) => Fact,
): Fact | undefined {
  const kind = kindOf(tag);
  return kind === undefined ? undefined : fact(settingsOfTag(tag, kind));
}

/** The settings of a tag that a server has, as core has them. */
export function settingsOfTag(tag: TagJson, kind: KindName): TagKind {
  const fields = specOf({ kind }).fields;
  const asked = Object.entries(valuesOfTag(tag, kind)).filter(
    ([name]) => fields[name]?.role !== "output-only",
  );
  const draft = { kind, ...Object.fromEntries(asked) } as unknown as KindDraft;
  const of = { name: tag.name, ceiling: BigInt(tag.ceiling), nowMs: Number.MAX_SAFE_INTEGER };
  return settledKind(draft, of).settings;
}

/** What a form would have typed into it for such a tag. */
export function formOfTag(tag: TagJson, kind: KindName): FormValues {
  const values: Values = {
    description: tag.description,
    order: tag.order.replace("ORDER_", ""),
    ceiling: BigInt(tag.ceiling),
    format: { template: tag.format?.template ?? "" },
    unguessable: { key_id: tag.unguessable?.keyId, key_digits: tag.unguessable?.keyDigits },
    [kind]: valuesOfTag(tag, kind),
  };
  return Object.fromEntries(
    formFields(kind).map(({ path, field }) => {
      let value: Value = values;
      for (const name of path.split(".")) value = (value as Values | undefined)?.[name];
      return [path, textOf(field, value)];
    }),
  );
}
