// Messages out of the descriptors of the API: every field, known or not, as bytes or as JSON.
import {
  createFileRegistry,
  type DescField,
  type DescMessage,
  type DescMethod,
  fromBinary,
  ScalarType,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { fileDescriptorSetBase64 } from "@idmint/proto/descriptors";
import type { Dice } from "../../sim/world/random.ts";
import { broken, noise } from "./bytes.ts";
import { nanos, number, seconds, text } from "./values.ts";

const files = createFileRegistry(
  fromBinary(FileDescriptorSetSchema, Buffer.from(fileDescriptorSetBase64, "base64")),
);

/** Every method that a server has, by its path. */
export const METHODS: ReadonlyMap<string, DescMethod> = new Map(
  [...files].flatMap((one) =>
    one.kind === "service"
      ? one.methods.map((method) => [`/${one.typeName}/${method.name}`, method] as const)
      : [],
  ),
);

type Single = bigint | number | boolean | string | Buffer | Tree;
type Value = Single | readonly Single[];
type Tree = readonly (readonly [DescField, Value])[];

const MOST_DEPTH = 6;

function isTree(value: Single): value is Tree {
  return Array.isArray(value);
}

/** A message with some of its fields; of a oneof there is one, or by mistake two. */
export function drawn(dice: Dice, of: DescMessage, depth = 0): Tree {
  if (of.typeName === "google.protobuf.Timestamp" || of.typeName === "google.protobuf.Duration") {
    const values = [seconds(dice), nanos(dice)];
    return of.fields.map((field, at) => [field, values[at] ?? 0]);
  }
  const share = dice.pick([0.15, 0.4, 0.8]);
  const chosen = new Map(of.oneofs.map((one) => [one, dice.pick(one.fields)]));
  const fields = of.fields.filter((field) => {
    if (field.oneof !== undefined && chosen.get(field.oneof) !== field) return dice.chance(0.02);
    // What a call is about is seldom left out, or nothing else of it would be looked at.
    return field.number === 1 ? dice.chance(0.9) : dice.chance(share);
  });
  return fields
    .filter((field) => field.message === undefined || depth < MOST_DEPTH)
    .map((field) => [field, valueOf(dice, field, depth)] as const);
}

function valueOf(dice: Dice, field: DescField, depth: number): Value {
  if (field.fieldKind !== "list") return singleOf(dice, field, depth);
  const length = dice.chance(0.02) ? dice.int(30, 3_000) : dice.int(0, 3);
  return Array.from({ length }, () => singleOf(dice, field, depth));
}

function singleOf(dice: Dice, field: DescField, depth: number): Single {
  if (field.fieldKind === "map") return [];
  if (field.message !== undefined) return drawn(dice, field.message, depth + 1);
  if (field.enum !== undefined) {
    const known = dice.pick(field.enum.values).number;
    return dice.chance(0.9) ? known : Number(BigInt.asIntN(32, number(dice)));
  }
  const { scalar } = field;
  if (scalar === ScalarType.STRING) return text(dice, field.name);
  if (scalar === ScalarType.BYTES) return noise(dice, 20);
  if (scalar === ScalarType.BOOL) return dice.chance(0.5);
  if (scalar === ScalarType.DOUBLE) return dice.pick([0, -0, 0.5, 1e308, Number.NaN, Infinity]);
  return number(dice);
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Buffer.from([...bytes, Number(rest)]);
}

function key(number: number, type: number): Buffer {
  return varint((BigInt(number) << 3n) | BigInt(type));
}

function delimited(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([key(number, 2), varint(BigInt(bytes.length)), bytes]);
}

function single(field: DescField, value: Single): Buffer {
  if (isTree(value)) return delimited(field.number, wireOf(value));
  if (Buffer.isBuffer(value)) return delimited(field.number, value);
  if (typeof value === "string") return delimited(field.number, Buffer.from(value));
  if (field.scalar === ScalarType.DOUBLE) {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(Number(value));
    return Buffer.concat([key(field.number, 1), bytes]);
  }
  return Buffer.concat([key(field.number, 0), varint(BigInt(value))]);
}

/** As it goes over the wire. */
function wireOf(tree: Tree): Buffer {
  return Buffer.concat(
    tree.flatMap(([field, value]) =>
      field.fieldKind === "list"
        ? (value as readonly Single[]).map((each) => single(field, each))
        : [single(field, value as Single)],
    ),
  );
}

type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

function jsonSingle(field: DescField, value: Single): Json {
  if (typeof value === "bigint") {
    return field.scalar === ScalarType.INT64 || field.scalar === ScalarType.UINT64
      ? String(value)
      : Number(value);
  }
  if (Buffer.isBuffer(value)) return value.toString("base64");
  if (!isTree(value)) {
    return field.enum?.value[value as number]?.name ?? value;
  }
  const [first, second] = value.map(([, each]) => each);
  const [whole, fraction] = [Number(first ?? 0), Number(second ?? 0)];
  const type = field.message?.typeName;
  if (type === "google.protobuf.Duration")
    return fraction === 0 ? `${whole}s` : `${whole}.${String(fraction).padStart(9, "0")}s`;
  if (type === "google.protobuf.Timestamp") {
    const date = new Date(whole * 1_000 + fraction / 1e6);
    return Number.isNaN(date.getTime()) ? String(whole) : date.toISOString();
  }
  if (type === "google.protobuf.FieldMask") return Array.isArray(first) ? first.join(",") : "";
  return jsonOf(value);
}

/** As JSON has it (proto3), names in either case. */
export function jsonOf(tree: Tree): Json {
  return Object.fromEntries(
    tree.map(([field, value]) => [
      field.number % 3 === 0 ? field.name : field.jsonName,
      field.fieldKind === "list"
        ? (value as readonly Single[]).map((each) => jsonSingle(field, each))
        : jsonSingle(field, value as Single),
    ]),
  );
}

const NOTHING: Buffer = Buffer.alloc(0);

/** What no client writes: fields that there are not, wrong wire types, counts and depths beyond measure. */
const SPOILT: readonly ((message: Buffer, dice: Dice) => Buffer)[] = [
  (message, dice) => broken(dice, message),
  (message, dice) => message.subarray(0, dice.int(0, message.length)),
  (message, dice) => {
    const bytes = Buffer.from(message);
    if (bytes.length > 0) bytes[0] = ((bytes[0] ?? 0) & 0xf8) | dice.int(0, 7);
    return bytes;
  },
  (message, dice) => {
    const number = dice.pick([0, 99, 1_000, 19_000, 2 ** 29 - 1]);
    return Buffer.concat([message, delimited(number, noise(dice, 40))]);
  },
  (message, dice) => {
    const length = dice.pick([2n ** 31n - 1n, 2n ** 31n, 2n ** 32n, 2n ** 63n]);
    return Buffer.concat([Buffer.from([0x0a]), varint(length), message]);
  },
  (message) => Buffer.concat([message, Buffer.alloc(20, 0xff)]),
  (message) => {
    let bytes = message;
    for (let depth = 0; depth < 500 && bytes.length < 8_000; depth++) bytes = delimited(1, bytes);
    return bytes;
  },
  (message, dice) => Buffer.concat([message, Buffer.alloc(dice.int(1, 8_000), 0x0b)]),
  (message) => Buffer.concat([message, Buffer.from([0x0a, 4, 0xc3, 0x28, 0xed, 0xa0])]),
  (message) => Buffer.concat([message, message, message]),
  (_, dice) => noise(dice, 300),
  () => Buffer.alloc(17 * 1_024, 0x0a),
  () => NOTHING,
];

/** Bytes of a request: most are right, the others are spoilt. */
export function requestBytes(dice: Dice, method: DescMethod): Buffer {
  const message = wireOf(drawn(dice, method.input));
  return dice.chance(0.6) ? message : dice.pick(SPOILT)(message, dice);
}
