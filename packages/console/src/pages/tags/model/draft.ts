// What a form asks for: the draft that core judges, and the JSON that the API takes.
import {
  type Field,
  type Fields,
  type KindDraft,
  type KindName,
  plainText,
  specOf,
  type Value,
  type Values,
  valuesOf,
} from "@idmint/core/kinds";
import { commonFields, type FormValues, groupsOf, kindFields, plainSettings } from "./fields.ts";
import { type Fault, textOf, valueFrom } from "./typed.ts";

/** What is typed when a form opens. A message is there with its defaults, since its fields belong together. */
export function initialValues(kind: KindName): FormValues {
  const groups = groupsOf(kind);
  const known = valuesOf(plainSettings(kind));
  return Object.fromEntries(
    kindFields(kind)
      .filter(({ path }) => groups.some((group) => path.startsWith(`${group}.`)))
      .map(({ path, field }) => [path, textOf(field, valueBelow(known, path))]),
  );
}

/** The value at a path that begins with the kind. */
function valueBelow(values: Values, path: string): Value {
  const [, ...names] = path.split(".");
  let value: Value = values;
  for (const name of names) value = (value as Values | undefined)?.[name];
  return value;
}

/** What a form asks for. */
export interface FormDraft {
  readonly kind: KindDraft;
  readonly common: Values;
  /** What cannot be sent, by path. */
  readonly faults: ReadonlyMap<string, Fault>;
}

/** Reads a form. Messages of which nothing was changed are left to the server's defaults. */
export function draftOf(kind: KindName, values: FormValues): FormDraft {
  const faults = new Map<string, Fault>();
  const read = (path: string, field: Field): Value => {
    const found = valueFrom(field, values[path] ?? "");
    if ("value" in found) return isEmpty(field, found.value) ? undefined : found.value;
    faults.set(path, found.fault);
    return undefined;
  };
  const initial = initialValues(kind);
  const isChanged = (group: string): boolean =>
    Object.entries(initial).some(
      ([path, text]) => path.startsWith(`${group}.`) && (values[path] ?? "") !== text,
    );
  const readAll = (fields: Fields, place: string): Values =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([name, field]) => {
        const path = `${place}.${name}`;
        if (field.role !== undefined && field.role !== "input-only") return [];
        if (field.fields === undefined) return [[name, read(path, field)]];
        return isChanged(path) ? [[name, readAll(field.fields, path)]] : [];
      }),
    );
  const common = Object.fromEntries(
    commonFields(kind).map(({ path, field }) => [path, read(path, field)]),
  );
  const settings = readAll(specOf({ kind }).fields, kind);
  return { kind: { kind, ...settings }, common, faults };
}

/** The API cannot tell a number of 0 from none. */
function isEmpty({ type }: Field, value: Value): boolean {
  return value === 0n || (value === 0 && (type === "int32" || type === "uint32"));
}

/** A tag as the API has it in JSON, with nothing but what was asked for. */
export function tagJson(
  name: string,
  { kind, common }: FormDraft,
): Readonly<Record<string, unknown>> {
  const { kind: word, ...settings } = kind;
  const keyId = common["unguessable.key_id"];
  return {
    name,
    [camelCase(word)]: messageJson(specOf(kind).fields, settings as unknown as Values),
    ...kept("description", common["description"]),
    ...kept(
      "order",
      common["order"] === undefined ? undefined : `ORDER_${plainText(common["order"])}`,
    ),
    ...kept("ceiling", common["ceiling"] === undefined ? undefined : plainText(common["ceiling"])),
    ...(common["format.template"] === undefined
      ? {}
      : { format: { template: common["format.template"] } }),
    ...(keyId === undefined
      ? {}
      : { unguessable: { keyId, ...kept("keyDigits", common["unguessable.key_digits"]) } }),
  };
}

function kept(name: string, value: unknown): Readonly<Record<string, unknown>> {
  return value === undefined ? {} : { [name]: value };
}

/** A message of the API in JSON, without the fields that are empty. */
export function messageJson(fields: Fields, values: Values): Readonly<Record<string, unknown>> {
  const entries = Object.entries(fields).flatMap(([name, field]) => {
    const value = values[name];
    return value === undefined ? [] : [[camelCase(name), jsonOf(field, value)] as const];
  });
  return Object.fromEntries(entries);
}

function jsonOf({ type, enum: kinds, fields = {} }: Field, value: NonNullable<Value>): unknown {
  switch (type) {
    case "id":
      return plainText(value);
    case "duration":
      return `${(Number(value) / 1_000).toFixed(3).replace(".000", "")}s`;
    case "time":
      return new Date(Number(value)).toISOString();
    case "enum":
      return `${kinds?.name ?? ""}_${plainText(value)}`;
    case "message":
      return messageJson(fields, value as Values);
    case "int32":
    case "uint32":
    case "text":
    case "bool":
      return value;
    default:
      return type satisfies never;
  }
}

/** A name of the API as JSON has it. */
export function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/gu, (_, letter: string) => letter.toUpperCase());
}
