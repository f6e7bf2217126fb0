import { type IdmintError, invalidField, type ObjectIdMaker, type UuidMaker } from "@idmint/core";
import type { TagKind } from "@idmint/core/kinds";
import type { Tag } from "@idmint/core/server";
import type { TagSource, TakenIds } from "./source.ts";

/** What makes ids that are text, one of each for a server. */
export interface TextMakers {
  readonly uuid: UuidMaker;
  readonly objectId: ObjectIdMaker;
}

/** How ids of one kind are made that are text. */
export interface TextIds<Kind> {
  /** Throws INVALID_ARGUMENT when so many ids cannot be made of this name; empty: of none. */
  assertName(kind: Kind, count: number, name: string): void;
  next(kind: Kind, name: string): string;
}

/** For kinds whose ids are made of no names. */
export function assertNoName(name: string): void {
  if (name === "") return;
  const text = "must be empty: the ids of this tag have no names";
  throw invalidField("name", text, "FIELD_CONFLICT");
}

/** The ids of one tag that are text: made here, of nothing that is stored. */
export class TextSource<Kind extends TagKind> implements TagSource {
  readonly waiting = 0;
  readonly ready = 0;
  readonly #ids: TextIds<Kind>;
  #kind: Kind;
  #epoch = 0n;
  #refusal: IdmintError | undefined;
  #isDrained = false;

  constructor(kind: Kind, ids: TextIds<Kind>) {
    this.#kind = kind;
    this.#ids = ids;
  }

  async take(count: number, _call: unknown, name = ""): Promise<TakenIds> {
    if (this.#refusal !== undefined) throw this.#refusal;
    this.#ids.assertName(this.#kind, count, name);
    const texts: string[] = [];
    for (let made = 0; made < count; made++) texts.push(this.#ids.next(this.#kind, name));
    return { segments: [], texts, epoch: this.#epoch, period: undefined };
  }

  update({ kind }: Tag): void {
    if (kind.kind === this.#kind.kind) this.#kind = kind as Kind;
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
