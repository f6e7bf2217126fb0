// The table of each kind says what the .proto files say.
import { fromBinary } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  type FieldDescriptorProto,
  FieldDescriptorProto_Type as Type,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { type Field, type Fields, KIND_NAMES, KINDS } from "@idmint/core/kinds";
import { fileDescriptorSetBase64 } from "@idmint/proto/descriptors";
import { expect, test } from "vitest";

const { file: files } = fromBinary(
  FileDescriptorSetSchema,
  Buffer.from(fileDescriptorSetBase64, "base64"),
);
const api = files.find(({ name }) => name.endsWith("v1/tag.proto"))!;
const messageOf = (typeName: string): DescriptorProto =>
  api.messageType.find(({ name }) => `.idmint.v1.${name}` === typeName)!;
const enumOf = (typeName: string): EnumDescriptorProto =>
  api.enumType.find(({ name }) => `.idmint.v1.${name}` === typeName)!;

/** Number of the extension google.api.field_behavior, and some of what it may say. */
const FIELD_BEHAVIOR = 1_052;
const BEHAVIORS = new Map([
  [3, "OUTPUT_ONLY"],
  [4, "INPUT_ONLY"],
  [5, "IMMUTABLE"],
]);

function behaviorsOf({ options }: FieldDescriptorProto): ReadonlySet<string | undefined> {
  const unknown = options?.$unknown ?? [];
  const said = unknown.filter(({ no }) => no === FIELD_BEHAVIOR);
  return new Set(said.map(({ data }) => BEHAVIORS.get(new BinaryReader(data).int32())));
}

const TYPES: Readonly<Record<Field["type"], readonly [Type, typeName?: string]>> = {
  bool: [Type.BOOL],
  duration: [Type.MESSAGE, ".google.protobuf.Duration"],
  enum: [Type.ENUM],
  id: [Type.INT64],
  int32: [Type.INT32],
  message: [Type.MESSAGE],
  text: [Type.STRING],
  time: [Type.MESSAGE, ".google.protobuf.Timestamp"],
  uint32: [Type.UINT32],
};

function assertTable(where: string, fields: Fields, message: DescriptorProto): void {
  const told = Object.entries(fields).filter(([, { role }]) => role !== "row-only");
  expect(told.map(([name]) => name).toSorted(), where).toEqual(
    message.field.map(({ name }) => name).toSorted(),
  );
  for (const [name, field] of told) {
    const found = message.field.find((each) => each.name === name)!;
    const at = `${where}.${name}`;
    const [type, typeName] = TYPES[field.type];
    expect(found.type, at).toBe(type);
    if (typeName !== undefined) expect(found.typeName, at).toBe(typeName);
    const behaviors = behaviorsOf(found);
    const isOutput = field.role === "output-only" || field.role === "placed";
    expect(behaviors.has("OUTPUT_ONLY"), at).toBe(isOutput);
    expect(behaviors.has("INPUT_ONLY"), at).toBe(field.role === "input-only");
    expect(behaviors.has("IMMUTABLE"), at).toBe(!isOutput && field.change === "never");
    if (field.type === "message") assertTable(at, field.fields ?? {}, messageOf(found.typeName));
    if (field.type === "enum") assertEnum(at, field, enumOf(found.typeName));
  }
}

function assertEnum(at: string, { enum: type }: Field, found: EnumDescriptorProto): void {
  const named = type?.values.map((value, index) => [`${type.name}_${value}`, index + 1]);
  expect(
    found.value.map(({ name, number }) => [name, number]),
    at,
  ).toEqual([[`${type?.name}_UNSPECIFIED`, 0], ...(named ?? [])]);
}

test.each(KIND_NAMES)("the table of kind %s is that of the API", (kind) => {
  const tag = messageOf(".idmint.v1.Tag");
  const message = messageOf(tag.field.find(({ name }) => name === kind)!.typeName);
  assertTable(kind, KINDS[kind].fields, message);
});

test("every kind of the API has a table", () => {
  const { field, oneofDecl } = messageOf(".idmint.v1.Tag");
  expect(oneofDecl.map(({ name }) => name)).toEqual(["kind"]);
  const kinds = field.filter(({ typeName }) => typeName.endsWith("Kind"));
  expect(kinds.map(({ name }) => name).toSorted()).toEqual([...KIND_NAMES].toSorted());
});
