import { assertNoViolations, invalidField, tagNameViolation } from "@idmint/core";
import { specOf } from "@idmint/core/kinds";
import {
  MAX_TEXT_LENGTH,
  type ParsedText,
  type Tag,
  tagNotFound,
  type TagStore,
} from "@idmint/core/server";
import type { AdminGate } from "../admin-gate.ts";
import { type Held, heldInNumber, heldInText } from "../kinds/decoders.ts";
import { isTextKind } from "../kinds/text-ids.ts";
import { TagText, type TextPorts } from "./tag-text.ts";

/** An id, taken apart. */
export interface Decoded {
  /** The number behind it; 0 for kinds uuid and object_id. */
  readonly number: bigint;
  /** Milliseconds since 1970; undefined for ids that hold no time. */
  readonly timeMs: number | undefined;
  readonly fields: Held["fields"] | undefined;
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
  const isText = isTextKind(kind) || format !== undefined;
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
  if (isTextKind(kind)) {
    return { ...NOTHING, ...heldInText(kind, "text" in value ? value.text : "") };
  }
  const writer =
    format === undefined && unguessable === undefined ? undefined : new TagText(tag, texts);
  const { number, keyId, parts } =
    writer?.read(value) ?? ("id" in value ? { number: value.id, keyId: 0, parts: [] } : NOTHING);
  // A composed number may be 0.
  assertNumber(number, specOf(kind).composed === undefined ? 1n : 0n, tag.ceiling);
  return { ...NOTHING, ...heldInNumber(kind, number), number, keyId, parts };
}

function assertNumber(number: bigint, first: bigint, ceiling: bigint): void {
  if (number < first || number > ceiling)
    throw invalidField(
      "id",
      `must be ${first} to ${ceiling}, the tag's ceiling, got ${number}`,
      "INVALID_ID",
    );
}
