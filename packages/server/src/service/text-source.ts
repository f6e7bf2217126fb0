import {
  type IdmintError,
  invalidField,
  type ObjectIdKind,
  type ObjectIdMaker,
  type Tag,
  type UuidKind,
  type UuidMaker,
} from "@idmint/core";
import type { TagSource, TakenIds } from "./entries.ts";

/** Longest name of a UUID of version 3 or 5, in bytes of UTF-8. */
const MAX_NAME_BYTES = 4_096;

/** What makes the ids of kinds uuid and object_id, one of each for a server. */
export interface TextMakers {
  readonly uuid: UuidMaker;
  readonly objectId: ObjectIdMaker;
}

/** The ids of one tag of kind uuid or object_id: made here, of nothing that is stored. */
export class TextSource implements TagSource {
  readonly busy = false;
  readonly ready = 0;
  readonly #makers: TextMakers;
  #kind: UuidKind | ObjectIdKind;
  #epoch = 0n;
  #refusal: IdmintError | undefined;
  #isDrained = false;

  constructor(kind: UuidKind | ObjectIdKind, makers: TextMakers) {
    this.#kind = kind;
    this.#makers = makers;
  }

  async take(count: number, _call: unknown, name = ""): Promise<TakenIds> {
    if (this.#refusal !== undefined) throw this.#refusal;
    assertName(this.#kind, count, name);
    const texts: string[] = [];
    for (let made = 0; made < count; made++) texts.push(this.#next(name));
    return { segments: [], texts, epoch: this.#epoch, period: undefined };
  }

  #next(name: string): string {
    const { uuid, objectId } = this.#makers;
    const kind = this.#kind;
    return kind.kind === "uuid" ? uuid.next(kind, name) : objectId.next(kind.variant);
  }

  update({ kind }: Tag): void {
    if (kind.kind === "uuid" || kind.kind === "object_id") this.#kind = kind;
  }

  observeEpoch(epoch: bigint): void {
    if (epoch > this.#epoch) this.#epoch = epoch;
  }

  fence(error: IdmintError): void {
    this.#refusal ??= error;
  }

  unfence(): void {
    if (!this.#isDrained) this.#refusal = undefined;
  }

  retryNow(): void {
    // Nothing is loaded.
  }

  sample(): void {
    // Nothing is held.
  }

  drain(error: IdmintError): number {
    this.#isDrained = true;
    this.#refusal = error;
    return 0;
  }
}

function assertName(kind: UuidKind | ObjectIdKind, count: number, name: string): void {
  const isNamed = kind.kind === "uuid" && (kind.version === 3 || kind.version === 5);
  if (!isNamed) {
    if (name === "") return;
    const text = "must be empty: the ids of this tag have no names";
    throw invalidField("name", text, "FIELD_CONFLICT");
  }
  if (name === "") {
    const wayOut = count > 1 ? "; ask with GenerateId, once for each" : "";
    throw invalidField(
      "name",
      `is required: the name that an id of version ${kind.version} is made from${wayOut}`,
      "FIELD_REQUIRED",
    );
  }
  const bytes = new TextEncoder().encode(name).length;
  if (bytes <= MAX_NAME_BYTES) return;
  const tooLong = `must be at most ${MAX_NAME_BYTES} bytes, got ${bytes}`;
  throw invalidField("name", tooLong, "VALUE_OUT_OF_RANGE");
}
