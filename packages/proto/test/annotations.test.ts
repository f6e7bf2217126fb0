// What the .proto files say to other languages and to tools, beside names and types.
import { fromBinary } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import {
  type DescriptorProto,
  type FieldDescriptorProto,
  FieldDescriptorProto_Type as Type,
  FileDescriptorSetSchema,
  type MethodDescriptorProto,
} from "@bufbuild/protobuf/wkt";
import { fileDescriptorSetBase64 } from "@idmint/proto/descriptors";
import { expect, test } from "vitest";

const { file: all } = fromBinary(
  FileDescriptorSetSchema,
  Buffer.from(fileDescriptorSetBase64, "base64"),
);
const files = all.filter((file) => file.package === "idmint.v1");
const messages: ReadonlyMap<string, DescriptorProto> = new Map(
  files.flatMap((file) =>
    file.messageType.map((message) => [`.idmint.v1.${message.name}`, message] as const),
  ),
);
const methods = files.flatMap((file) =>
  file.service.flatMap((service) =>
    service.method.map((method) => ({ service: service.name, method })),
  ),
);

/** Number of the extension google.api.field_behavior, and what it may say. */
const FIELD_BEHAVIOR = 1_052;
const BEHAVIORS = new Map([
  [1, "OPTIONAL"],
  [2, "REQUIRED"],
  [3, "OUTPUT_ONLY"],
  [4, "INPUT_ONLY"],
  [5, "IMMUTABLE"],
]);

function behaviorsOf(field: FieldDescriptorProto): readonly (string | undefined)[] {
  const unknown = field.options?.$unknown ?? [];
  return unknown
    .filter(({ no }) => no === FIELD_BEHAVIOR)
    .map(({ data }) => BEHAVIORS.get(new BinaryReader(data).int32()));
}

/** The message and all that its fields hold, of this API. */
function reachable(name: string, seen = new Map<string, DescriptorProto>()): typeof seen {
  const message = messages.get(name);
  if (message === undefined || seen.has(name)) return seen;
  seen.set(name, message);
  for (const { type, typeName } of message.field) {
    if (type === Type.MESSAGE) reachable(typeName, seen);
  }
  return seen;
}

const sent = new Map(methods.flatMap(({ method }) => [...reachable(method.inputType)]));

test("there is something to look at", () => {
  expect(methods.length).toBeGreaterThan(20);
  expect([...sent.keys()]).toContain(".idmint.v1.SnowflakeLayout");
});

const fields = [...sent.values()].flatMap((message) =>
  message.field.map((field) => [`${message.name}.${field.name}`, field] as const),
);

test.each(fields)("callers are told whether they have to set %s", (where, field) => {
  const behaviors = behaviorsOf(field);
  expect(behaviors, where).not.toContain(undefined);
  const presence = behaviors.filter((each) =>
    ["OPTIONAL", "REQUIRED", "OUTPUT_ONLY"].includes(each ?? ""),
  );
  expect(presence, where).toHaveLength(1);
});

/** Methods that hand out ids or time, or only answer. All others change what an operator set up. */
const IS_NO_CHANGE =
  /^(Get|List|Lookup|Generate|Stream|Allocate|Decode|Lease|Renew|ReleaseSegment|ReleaseWorkerLease)/;

function fieldOf(method: MethodDescriptorProto, name: string): FieldDescriptorProto | undefined {
  return messages.get(method.inputType)?.field.find((field) => field.name === name);
}

test("every method that changes something can be tried with validate_only", () => {
  const changes = methods.filter(({ method }) => !IS_NO_CHANGE.test(method.name));
  expect(changes.map(({ method }) => method.name)).toContain("CreateTag");
  for (const { service, method } of changes) {
    const where = `${service}.${method.name}`;
    expect(fieldOf(method, "validate_only")?.type, where).toBe(Type.BOOL);
  }
});

test("every file says what its code is called in Go, Java and C#", () => {
  const outer = new Set<string>();
  for (const { name, options } of files) {
    expect(options, name).toMatchObject({
      goPackage: "idmint/v1;idmintv1",
      javaPackage: "io.idmint.v1",
      javaMultipleFiles: true,
      csharpNamespace: "Idmint.V1",
    });
    outer.add(options?.javaOuterClassname ?? "");
  }
  // Java has them beside the messages, in one package.
  expect(outer.size).toBe(files.length);
  expect([...outer].filter((name) => name === "" || messages.has(`.idmint.v1.${name}`))).toEqual(
    [],
  );
});

test("what a file takes from others, and what is beside it, has packages for Go and Java too", () => {
  const vendored = all.filter((file) => file.package !== "idmint.v1");
  expect(vendored.length).toBeGreaterThan(5);
  for (const { name, options } of vendored) {
    expect(options?.goPackage, name).toContain("google.golang.org/");
    expect(options?.javaPackage, name).toMatch(/^(com\.google|io\.grpc)\./);
  }
});
