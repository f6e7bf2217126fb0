import {
  assertNoViolations,
  decode,
  decodeObjectId,
  decodeUuid,
  decomposeId,
  invalidField,
  MAX_TEXT_LENGTH,
  type ParsedText,
  type Tag,
  tagNameViolation,
  tagNotFound,
  type TagStore,
  timeOf,
} from "@idmint/core";
import { specOf } from "@idmint/core/kinds";
import type { AdminGate } from "./admin-gate.ts";
import { TagText, type TextPorts } from "./tag-text.ts";

/** The fields of a number that was composed of them. */
interface Fields {
  readonly ticks: number;
  readonly extension: number;
  readonly dataCenter: number;
  readonly worker: number;
  readonly sequence: number;
}

/** An id, taken apart. */
export interface Decoded {
  /** The number behind it; 0 for kinds uuid and object_id. */
  readonly number: bigint;
  /** Milliseconds since 1970; undefined for ids that hold no time. */
  readonly timeMs: number | undefined;
  readonly fields: Fields | undefined;
  readonly parts: ParsedText["parts"];
  /** 0 for all others than UUIDs. */
  readonly uuidVersion: number;
  /** 0 for ids without a key. */
  readonly keyId: number;
}

type Value = { readonly id: bigint } | { readonly text: string };

const NOTHING: Decoded = {
  number: 0n,
  timeMs: undefined,
  fields: undefined,
  parts: [],
  uuidVersion: 0,
  keyId: 0,
};

/** Takes ids apart, by the newest record of their tag; whether they were ever issued is not asked. */
export class DecodeService {
  readonly #store: TagStore;
  readonly #gate: AdminGate;
  readonly #texts: TextPorts;

  constructor(ports: { store: TagStore; gate: AdminGate; texts: TextPorts }) {
    this.#store = ports.store;
    this.#gate = ports.gate;
    this.#texts = ports.texts;
  }

  /** INVALID_ARGUMENT for what is no id of the tag. */
  async decode(name: string, value: Value | undefined): Promise<Decoded> {
    assertNoViolations(
      tagNameViolation("tag", name),
      value === undefined
        ? { field: "value", description: "is required: id or text", reason: "FIELD_REQUIRED" }
        : undefined,
    );
    const [tag] = await this.#gate.run(() => this.#store.getTags([name]));
    if (tag === undefined || tag.state === "DELETED") throw tagNotFound(name);
    return decoded(tag, value ?? { id: 0n }, this.#texts);
  }
}

function decoded(tag: Tag, value: Value, texts: TextPorts): Decoded {
  const { kind, format, unguessable } = tag;
  const isText = specOf(kind).ids === "text" || format !== undefined;
  if (isText && "id" in value)
    throw invalidField(
      "id",
      "must be empty: the ids of this tag are text, so send text",
      "INVALID_ID",
    );
  if (!isText && "text" in value)
    throw invalidField(
      "text",
      "must be empty: the ids of this tag are numbers, so send id",
      "INVALID_ID",
    );
  if ("text" in value && value.text.length > MAX_TEXT_LENGTH)
    throw invalidField("text", `must be at most ${MAX_TEXT_LENGTH} characters`, "INVALID_ID");
  if (kind.kind === "uuid" && "text" in value) return uuid(value.text, kind.version);
  if (kind.kind === "object_id" && "text" in value) return objectId(value.text);
  const writer =
    format === undefined && unguessable === undefined ? undefined : new TagText(tag, texts);
  const { number, keyId, parts } =
    writer?.read(value) ?? ("id" in value ? { number: value.id, keyId: 0, parts: [] } : NOTHING);
  assertNumber(tag, number);
  return { ...NOTHING, ...fieldsOf(tag, number), number, keyId, parts };
}

function assertNumber({ ceiling, kind }: Tag, number: bigint): void {
  const first = kind.kind === "snowflake" || kind.kind === "redis_snowflake" ? 0n : 1n;
  if (number < first || number > ceiling)
    throw invalidField(
      "id",
      `must be ${first} to ${ceiling}, the tag's ceiling, got ${number}`,
      "INVALID_ID",
    );
}

function fieldsOf({ kind }: Tag, number: bigint): Partial<Decoded> {
  if (kind.kind === "snowflake") {
    const { tick: ticks, ...fields } = decode(kind.layout, number);
    return { timeMs: timeOf(kind.layout, ticks), fields: { ticks, ...fields } };
  }
  if (kind.kind !== "redis_snowflake") return {};
  const { atMs: timeMs, shard: worker, counter: sequence } = decomposeId(kind.timeOriginMs, number);
  const ticks = timeMs - kind.timeOriginMs;
  return { timeMs, fields: { ticks, extension: 0, dataCenter: 0, worker, sequence } };
}

function uuid(text: string, version: number): Decoded {
  const found = decodeUuid(text);
  if (found?.version === version) return { ...NOTHING, uuidVersion: version, timeMs: found.timeMs };
  throw invalidField("text", `must be a UUID of version ${version}, with its dashes`, "INVALID_ID");
}

function objectId(text: string): Decoded {
  const timeMs = decodeObjectId(text);
  if (timeMs !== undefined) return { ...NOTHING, timeMs };
  throw invalidField("text", "must be an ObjectId: 24 hexadecimal digits", "INVALID_ID");
}
