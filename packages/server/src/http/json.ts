import {
  createFileRegistry,
  type DescField,
  type DescMessage,
  type DescMethod,
  type FileRegistry,
  fromBinary,
  fromJson,
  fromJsonString,
  type JsonValue,
  ScalarType,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { type FieldViolation, IdmintError } from "@idmint/core";
import { fileDescriptorSetBase64 } from "@idmint/proto/descriptors";

/** More of them help nobody. */
const MAX_VIOLATIONS = 20;
const WHOLE_NUMBER = /^-?(?:0|[1-9]\d*)$/;
const DURATION = /^-?\d{1,12}(?:\.\d{1,9})?s$/;
const DATE = /^(\d{4})-(\d\d)-(\d\d)T/;
/** What the library says before it says what is wrong. */
const PREAMBLE = /^cannot decode [^:]* from JSON: /;
const INTEGERS: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT32,
  ScalarType.INT64,
  ScalarType.UINT32,
  ScalarType.UINT64,
  ScalarType.FIXED32,
  ScalarType.FIXED64,
  ScalarType.SFIXED32,
  ScalarType.SFIXED64,
  ScalarType.SINT32,
  ScalarType.SINT64,
]);

/**
 * The messages of the API as JSON, by the descriptors of the API; so the table of handlers knows bytes only, and a new method
 * needs nothing here. Reading the descriptors takes some 25 ms, which the first call waits for.
 */
let registry: FileRegistry | undefined;

function descriptors(): FileRegistry {
  registry ??= createFileRegistry(
    fromBinary(FileDescriptorSetSchema, Buffer.from(fileDescriptorSetBase64, "base64")),
  );
  return registry;
}

/** The method with the path of a row, such as `/idmint.v1.IdService/GenerateId`. */
function methodAt(path: string): DescMethod {
  const [, service = "", name = ""] = path.split("/");
  const method = descriptors()
    .getService(service)
    ?.methods.find((each) => each.name === name);
  if (method === undefined) throw new Error(`${path} is in the table and not in the descriptors`);
  return method;
}

/**
 * A request that came as JSON, in the bytes that the table takes. Throws MALFORMED_REQUEST with a violation for each field that
 * is not as it should be.
 *
 * INVARIANT: what is not understood is refused, never dropped or rounded: unknown fields, fields that come twice, values of
 * another type, and numbers that JSON cannot hold exactly.
 */
export function requestOf(path: string, body: Buffer): Uint8Array {
  const { input } = methodAt(path);
  const text = textOf(body);
  const violations: FieldViolation[] = [];
  checkMessage(input, parse(text), "", violations);
  if (violations.length > 0) throw malformed(violations);
  try {
    return toBinary(input, fromJsonString(input, text));
  } catch (thrown) {
    // Fields that come twice, or several of a oneof.
    throw malformed([{ field: fieldOf(thrown), description: saidBy(thrown) }]);
  }
}

/** An answer of the table as JSON. Every field is there, also one that holds its type's zero. */
export function responseOf(path: string, bytes: Uint8Array): string {
  const { output } = methodAt(path);
  return JSON.stringify(toJson(output, fromBinary(output, bytes), { alwaysEmitImplicit: true }));
}

/** A detail of an error as JSON, for people who read it; undefined when its type is not known. */
export function detailOf(typeName: string, bytes: Uint8Array): JsonValue | undefined {
  const type = descriptors().getMessage(typeName);
  return type === undefined ? undefined : toJson(type, fromBinary(type, bytes));
}

function textOf(body: Buffer): string {
  if (body.length === 0) throw malformed([], "the body is empty; send a JSON object, at least {}");
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    throw malformed([], "the body is not valid UTF-8");
  }
}

function parse(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (thrown) {
    throw malformed([], `the body is not valid JSON: ${saidBy(thrown)}`);
  }
}

function checkMessage(
  type: DescMessage,
  json: JsonValue,
  path: string,
  violations: FieldViolation[],
): void {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    violations.push(violation(path, `must be a JSON object, got ${shown(json)}`));
    return;
  }
  for (const [key, value] of Object.entries(json)) {
    if (violations.length >= MAX_VIOLATIONS) return;
    const field = type.fields.find(({ name, jsonName }) => name === key || jsonName === key);
    const its = path === "" ? key : `${path}.${key}`;
    if (field === undefined) {
      const known = type.fields.map(({ jsonName }) => jsonName).join(", ");
      const has = known === "" ? "no fields" : `the fields ${known}`;
      violations.push(violation(its, `is not known: ${type.name} has ${has}`));
    } else if (value !== null) {
      checkField(type, field, { key, value, path: its }, violations);
    }
  }
}

function checkField(
  type: DescMessage,
  field: DescField,
  { key, value, path }: { readonly key: string; readonly value: JsonValue; readonly path: string },
  violations: FieldViolation[],
): void {
  if (field.fieldKind === "list" && Array.isArray(value)) {
    for (const [at, item] of value.entries()) {
      if (violations.length >= MAX_VIOLATIONS) return;
      const its = `${path}[${at}]`;
      if (field.listKind === "message" && isOurs(field.message)) {
        checkMessage(field.message, item, its, violations);
      } else checkLeaf(type, field, { key, value: item, path: its, isItem: true }, violations);
    }
  } else if (field.fieldKind === "message" && isOurs(field.message)) {
    checkMessage(field.message, value, path, violations);
  } else checkLeaf(type, field, { key, value, path, isItem: false }, violations);
}

/** Messages with a form of their own in JSON are values here. */
function isOurs(type: DescMessage): boolean {
  return !type.typeName.startsWith("google.protobuf.");
}

/** One value: the library says whether its type is right, and it is lenient where it must not be. */
function checkLeaf(
  type: DescMessage,
  field: DescField,
  leaf: {
    readonly key: string;
    readonly value: JsonValue;
    readonly path: string;
    readonly isItem: boolean;
  },
  violations: FieldViolation[],
): void {
  const { key, value, path, isItem } = leaf;
  const fault = leniency(field, value);
  if (fault !== undefined) {
    violations.push(violation(path, fault));
    return;
  }
  try {
    fromJson(type, { [key]: isItem ? [value] : value });
  } catch (thrown) {
    violations.push(violation(path, `is not valid: ${saidBy(thrown)}`));
  }
}

/** What the library would take although it is not what it looks like; undefined: nothing. */
function leniency(field: DescField, value: JsonValue): string | undefined {
  const { scalar, message } = field;
  if (scalar !== undefined && INTEGERS.has(scalar)) {
    if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)) {
      return "must be a string, since JSON cannot hold so large a number exactly";
    }
    // BigInt and Number read much else as a number: "0x10", " 1", "1e3".
    if (typeof value === "string" && !WHOLE_NUMBER.test(value)) {
      return `must be a whole number in decimal digits, got ${shown(value)}`;
    }
  }
  if (typeof value !== "string") return undefined;
  if (message?.typeName === "google.protobuf.Duration" && !DURATION.test(value)) {
    return `must be a number of seconds with an s behind it, such as "1.5s", got ${shown(value)}`;
  }
  if (message?.typeName === "google.protobuf.Timestamp" && !isDate(value)) {
    return `must be a time such as "2026-01-31T12:00:00Z", got ${shown(value)}`;
  }
  return undefined;
}

/** Date.parse takes 30 February for 2 March. */
function isDate(text: string): boolean {
  const [, year, month, day] = DATE.exec(text) ?? [];
  const midnight = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  return midnight.getUTCDate() === Number(day);
}

function violation(field: string, description: string): FieldViolation {
  return { field, description, reason: "MALFORMED_REQUEST" };
}

function malformed(violations: readonly FieldViolation[], text?: string): IdmintError {
  const said = violations.map(({ field, description }) => `${field} ${description}`.trim());
  return new IdmintError("MALFORMED_REQUEST", text ?? said.join("; "), {
    violations: violations.map((each) => ({ ...each, reason: "MALFORMED_REQUEST" })),
  });
}

function saidBy(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return text.replace(PREAMBLE, "");
}

/** Which field the library speaks of; empty: it does not say. */
function fieldOf(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message : "";
  const [, name] =
    /^cannot decode (?:field|oneof) (\S+) /.exec(text) ??
    /duplicate object key "([^"]*)"/.exec(text) ??
    [];
  return name?.split(".").at(-1) ?? "";
}

function shown(value: JsonValue): string {
  if (Array.isArray(value)) return "an array";
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
