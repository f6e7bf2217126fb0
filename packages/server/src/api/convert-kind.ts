// Reads and writes the settings of any kind, by its table. A test compares the tables with the API.
import { type Duration, durationOf, type TagKind } from "@idmint/core";
import {
  type Field,
  type Fields,
  KIND_NAMES,
  type KindDraft,
  KINDS,
  specOf,
  type Value,
  type Values,
  valuesOf,
} from "@idmint/core/kinds";
import type { Tag } from "@idmint/proto";
import { wholeMillisecondsOf } from "./duration.ts";

type Kind = NonNullable<Tag["kind"]>;
/** A message of the API, by its fields' names in TypeScript. */
type Message = Readonly<Record<string, unknown>>;

/** The settings of a kind as callers see them. */
export function protoKindOf(settings: TagKind): Kind {
  const { name, fields } = specOf(settings);
  const kind = { $case: camelCase(name), value: messageOf(fields, valuesOf(settings)) };
  return kind as unknown as Kind;
}

/** The settings of a kind as a caller wrote them; nothing is checked yet. */
export function kindDraftOf(kind: Kind): KindDraft {
  const { name, fields } = tableOf(kind);
  return { kind: name, ...valuesFrom(fields, messageIn(kind)) };
}

/** Fields of a kind that only the server may set: which, whether it is set, and what to do instead. */
export function outputOnlyOfKind(
  kind: Kind | undefined,
): readonly [field: string, isSet: boolean, wayOut: string][] {
  if (kind === undefined) return [];
  const { name, fields } = tableOf(kind);
  const message = messageIn(kind);
  return Object.entries<Field>(fields)
    .filter(([, { role }]) => role === "output-only" || role === "placed")
    .map(([field, spec]) => [
      `tag.${name}.${field}`,
      valueFrom(spec, message[camelCase(field)]) !== undefined,
      spec.role === "placed"
        ? "; tags are spread over the shards, and MoveTag moves one"
        : `; it follows from ${spec.of === "layout" ? "the layout" : spec.of}`,
    ]);
}

function tableOf(kind: Kind): { readonly name: KindDraft["kind"]; readonly fields: Fields } {
  const name = KIND_NAMES.find((each) => camelCase(each) === kind.$case);
  if (name === undefined) throw new Error(`kind ${kind.$case} has no table`);
  return KINDS[name];
}

function messageIn(kind: Kind): Message {
  return kind.value as unknown as Message;
}

function messageOf(fields: Fields, values: Values): Message {
  const entries = Object.entries(fields)
    .filter(([, { role }]) => role !== "row-only")
    .map(([name, field]) => {
      const value = field.role === "input-only" ? undefined : values[name];
      return [camelCase(name), protoValueOf(field, value)] as const;
    });
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
    .filter(([, { role }]) => role === undefined || role === "input-only")
    .map(([name, field]) => [name, valueFrom(field, message[camelCase(name)])] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** Undefined for what the caller left empty, NaN for a time or a duration that no number of milliseconds is. */
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

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
