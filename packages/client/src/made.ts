import {
  type Clock,
  type IdmintError,
  invalidField,
  type ObjectIdKind,
  type Segment,
  type UuidKind,
} from "@idmint/core";
import type { PeriodId } from "./api.ts";
import { Idleness } from "./idleness.ts";
import type { KindIds } from "./kind-ids.ts";
import { hasNoNames, hasNoPeriods, idsAreText } from "./kinds.ts";
import { makers } from "./makers.ts";

/** Longest name of a UUID of version 3 or 5, in bytes of UTF-8; servers have the same bound. */
const MAX_NAME_BYTES = 4_096;

/** The ids of a tag of kind uuid or object_id: made here, without a server. */
export class MadeIds implements KindIds {
  readonly kind: string;
  readonly #tag: string;
  readonly #made: ObjectIdKind | UuidKind;
  readonly #idleness: Idleness;
  #closed: IdmintError | undefined;

  constructor(tag: string, made: ObjectIdKind | UuidKind, clock: Clock) {
    this.kind = made.kind;
    this.#tag = tag;
    this.#made = made;
    this.#idleness = new Idleness(clock);
  }

  async nextText(_call: unknown, name: string | undefined): Promise<string> {
    return this.#next(name);
  }

  nextTextSync(): string {
    this.#idleness.keep();
    return this.#next(undefined);
  }

  now(): bigint | undefined {
    return undefined;
  }

  async next(): Promise<bigint> {
    throw idsAreText(this.#tag, this.kind);
  }

  async nextNumber(): Promise<number> {
    throw idsAreText(this.#tag, this.kind);
  }

  async nextPeriodId(): Promise<PeriodId> {
    throw hasNoPeriods(this.#tag, this.kind);
  }

  async take(): Promise<readonly Segment[]> {
    throw idsAreText(this.#tag, this.kind);
  }

  async warm(): Promise<void> {
    this.#idleness.keep();
    if (this.#closed !== undefined) throw this.#closed;
  }

  nextSync(): bigint {
    throw idsAreText(this.#tag, this.kind);
  }

  nextNumberSync(): number {
    throw idsAreText(this.#tag, this.kind);
  }

  idleMs(): number {
    return this.#idleness.measure();
  }

  resume(): boolean {
    return false;
  }

  forget(): void {
    // Nothing is held.
  }

  async close(error: IdmintError): Promise<void> {
    this.#closed = error;
  }

  #next(name: string | undefined): string {
    if (this.#closed !== undefined) throw this.#closed;
    this.#idleness.use();
    this.#assertName(name);
    const made = this.#made;
    const { uuid, objectId } = makers();
    return made.kind === "uuid" ? uuid.next(made, name) : objectId.next(made.variant);
  }

  #assertName(name: string | undefined): void {
    const made = this.#made;
    if (made.kind !== "uuid" || !("namespace" in made)) {
      if (name !== undefined) throw hasNoNames(this.#tag);
      return;
    }
    if (name === undefined || name === "") {
      const what = `the name that an id of version ${made.version} is made from`;
      throw invalidField("name", `is required: ${what}; call nextString({ name })`);
    }
    const bytes = Buffer.byteLength(name);
    if (bytes <= MAX_NAME_BYTES) return;
    throw invalidField("name", `must be at most ${MAX_NAME_BYTES} bytes, got ${bytes}`);
  }
}
