import { type Clock, type IdmintError, notWarm, type Segment } from "@idmint/core";
import type { PeriodId } from "../api.ts";
import { Idleness } from "../idleness.ts";
import type { Confirmation } from "./confirmation.ts";
import type { IdSource } from "./id-source.ts";
import { COLD_RETRY_MS, hasNoPeriods, idsAreText, notInMemory } from "./refusals.ts";

/** A tag whose ids are text that is made here. */
interface TextTag {
  readonly tag: string;
  readonly kind: string;
  /** Throws INVALID_ARGUMENT for a name that no id is made from. */
  readonly next: (name: string | undefined) => string;
  readonly confirmation: Confirmation;
}

/** The ids of a tag that are text: made here, without a server. */
export class LocalTextIds implements IdSource {
  readonly kind: string;
  readonly #tag: string;
  readonly #make: TextTag["next"];
  readonly #confirmation: Confirmation;
  readonly #idleness: Idleness;
  #closed: IdmintError | undefined;

  constructor({ tag, kind, next, confirmation }: TextTag, clock: Clock) {
    this.kind = kind;
    this.#tag = tag;
    this.#make = next;
    this.#confirmation = confirmation;
    this.#idleness = new Idleness(clock);
  }

  async nextText(_call: unknown, name: string | undefined): Promise<string> {
    // The call goes on with what servers say now.
    return this.#next(name, () => notInMemory(this.#tag, this.kind));
  }

  nextTextSync(): string {
    this.#idleness.keep();
    return this.#next(undefined, () => notWarm(this.#tag, COLD_RETRY_MS));
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
    this.#confirmation.keep();
    return this.#idleness.measure();
  }

  resume(): boolean {
    return false;
  }

  forget(): void {
    // Nothing is held.
  }

  expire(): void {
    this.#confirmation.expire();
  }

  async close(error: IdmintError): Promise<void> {
    this.#closed = error;
    this.#confirmation.close();
  }

  /** `over`: why there is none, once servers have to be asked. */
  #next(name: string | undefined, over: () => IdmintError): string {
    if (this.#closed !== undefined) throw this.#closed;
    if (this.#confirmation.isOver) {
      this.#confirmation.doubt();
      throw over();
    }
    this.#idleness.use();
    return this.#make(name);
  }
}
