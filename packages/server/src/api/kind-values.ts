// Reads and writes the settings of any kind as the API has them, by the kind's table. A test compares the tables with the
// .proto files. The entry @idmint/server/kind-values: the command line writes with it what servers read.
import { type Duration, durationOf, IdmintError, MAX_ID } from "@idmint/core";
import {
  type Field,
  type Fields,
  KIND_NAMES,
  type KindDraft,
  type KindName,
  KINDS,
  specOf,
  type TagKind,
  type Value,
  type Values,
  valuesOf,
} from "@idmint/core/kinds";
import type { Tag } from "@idmint/proto";
import { wholeMillisecondsOf } from "./duration.ts";

export type ProtoKind = NonNullable<Tag["kind"]>;
/** A message of the API, by its fields' names in TypeScript. */
type Message = Readonly<Record<string, unknown>>;

/** Which kind the settings of the API are of. */
export function kindNameOf({ $case }: Pick<ProtoKind, "$case">): KindName {
  const name = KIND_NAMES.find((each) => camelCase(each) === $case);
  if (name === undefined) throw new Error(`kind ${$case} has no table`);
  return name;
}

/** Values as settings of the API. What is undefined is left empty. */
export function protoKindFrom(kind: KindName, values: Values): ProtoKind {
  const message = { $case: camelCase(kind), value: messageOf(KINDS[kind].fields, values) };
  return message as unknown as ProtoKind;
}

/** The values of settings of the API. What is empty is left out, and NaN stands for a time that is no whole number of milliseconds. */
export function valuesOfProto(kind: ProtoKind): Values {
  return valuesFrom(KINDS[kindNameOf(kind)].fields, kind.value as unknown as Message);
}

/** The settings of a kind as callers see them. */
export function protoKindOf(settings: TagKind): ProtoKind {
  const { name, fields } = specOf(settings);
  const shown = without(fields, valuesOf(settings), ["input-only"]);
  return protoKindFrom(name, shown);
}

/** The settings of a kind as a caller wrote them; nothing is checked yet. */
export function kindDraftOf(kind: ProtoKind): KindDraft {
  const name = kindNameOf(kind);
  const asked = without(KINDS[name].fields, valuesOfProto(kind), ["output-only", "placed"]);
  return { kind: name, ...asked };
}

type Role = NonNullable<Fields[string]["role"]>;

function without(fields: Fields, values: Values, roles: readonly Role[]): Values {
  const left = Object.entries(values).filter(([name]) => {
    const role = fields[name]?.role;
    return role === undefined || !roles.includes(role);
  });
  return Object.fromEntries(left);
}

/** Fields of a kind that only the server may set: which, whether it is set, and what to do instead. */
export function outputOnlyOfKind(
  kind: ProtoKind | undefined,
): readonly [field: string, isSet: boolean, wayOut: string][] {
  if (kind === undefined) return [];
  const name = kindNameOf(kind);
  const fields: Fields = KINDS[name].fields;
  const values = valuesOfProto(kind);
  return Object.entries(fields)
    .filter(([, { role }]) => role === "output-only" || role === "placed")
    .map(([field, { role, of = "" }]) => [
      `tag.${name}.${field}`,
      values[field] !== undefined,
      role === "placed"
        ? "; tags are spread over the Redis servers, and MoveTag moves one"
        : `; it follows from ${fields[of]?.type === "message" ? `the ${of}` : of}`,
    ]);
}

/** The settings that a server answered. WRONG_KIND for a value that this release does not know. */
export function settingsOfProto(kind: ProtoKind): TagKind {
  const name = kindNameOf(kind);
  const asked = without(KINDS[name].fields, valuesOfProto(kind), ["output-only"]);
  const [unknown] = Object.entries(asked).find(([, value]) => value === "UNKNOWN") ?? [];
  if (unknown !== undefined) {
    throw new IdmintError("WRONG_KIND", `this release does not know the ${unknown} of the tag`);
  }
  // It was checked when the tag was made.
  const context = { name: "", ceiling: MAX_ID, nowMs: 0, placement: undefined, violations: [] };
  const draft: KindDraft = { kind: name, ...asked };
  return specOf(draft).settle(draft, context);
}

function messageOf(fields: Fields, values: Values): Message {
  const entries = Object.entries(fields)
    .filter(([, { role }]) => role !== "row-only")
    .map(([name, field]) => [camelCase(name), protoValueOf(field, values[name])] as const);
  return Object.fromEntries(entries);
}

function protoValueOf({ type, fields = {}, enum: kinds }: Field, value: Value): unknown {
  switch (type) {
    case "id":
      return value ?? 0n;
    case "int32":
    case "uint32":
      return value ?? 0;
    case "text":
      return value ?? "";
    case "bool":
      return value ?? false;
    case "enum":
      return 1 + (kinds?.values.indexOf(value as string) ?? -1);
    case "duration":
      return value === undefined ? undefined : durationOf(value as number);
    case "time":
      return value === undefined ? undefined : new Date(value as number);
    case "message":
      return value === undefined ? undefined : messageOf(fields, value as Values);
    default:
      return type satisfies never;
  }
}

function valuesFrom(fields: Fields, message: Message): Values {
  const entries = Object.entries(fields)
    .filter(([, { role }]) => role !== "row-only")
    .map(([name, field]) => [name, valueFrom(field, message[camelCase(name)])] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

function valueFrom({ type, fields = {}, enum: kinds }: Field, value: unknown): Value {
  if (value === undefined) return undefined;
  switch (type) {
    case "id":
      return value === 0n ? undefined : (value as bigint);
    case "int32":
    case "uint32":
      return value === 0 ? undefined : (value as number);
    case "text":
      return value === "" ? undefined : (value as string);
    case "bool":
      return value === false ? undefined : (value as boolean);
    case "enum":
      return value === 0 ? undefined : (kinds?.values[(value as number) - 1] ?? "UNKNOWN");
    case "duration":
      return wholeMillisecondsOf(value as Duration);
    case "time":
      return (value as Date).getTime();
    case "message":
      return valuesFrom(fields, value as Message);
    default:
      return type satisfies never;
  }
}

/** A name of the API as generated TypeScript has it. */
function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
