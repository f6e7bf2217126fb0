import type { IdmintError } from "@idmint/core";
import { type CallsOfConnection, tooMuchWaits } from "./call.ts";
import { Deframer } from "./deframer.ts";
import { decompress } from "./encoding.ts";
import { FRAMING, FramingRefusal } from "./framing.ts";

const EMPTY: Buffer = Buffer.alloc(0);

/**
 * A message as it was before it was compressed, between `from` and `to`; valid until this returns. Answers whether the next one
 * is wanted at once.
 */
type Take = (bytes: Buffer, from: number, to: number) => boolean;

/** Why a call cannot go on. */
export type Wrong = IdmintError | FramingRefusal;

/**
 * The messages of one call as they come: in parts, several at once, or compressed.
 *
 * INVARIANT: what is kept is counted in `held` of the connection, until it is handed on or forgotten; and no call goes on that
 * keeps something while that is too much.
 */
export class Incoming {
  readonly #its: CallsOfConnection;
  readonly #encoding: string;
  readonly #deframer = new Deframer();

  constructor(its: CallsOfConnection, encoding: string) {
    this.#its = its;
    this.#encoding = encoding;
  }

  /** Whether nothing is kept: what came were whole messages, and all of them were wanted. */
  get isEmpty(): boolean {
    return this.#deframer.kept === 0;
  }

  /** Takes the next bytes for later: no message is wanted now. Answers why the call cannot go on. */
  keep(bytes: Buffer, from: number, to: number): Wrong | undefined {
    const before = this.#deframer.room;
    this.#deframer.keep(bytes, from, to);
    this.#its.held.add(this.#deframer.room - before);
    return this.#tooMuch();
  }

  /** Takes the next bytes, and hands on what is wanted. Answers why the call cannot go on. */
  take(bytes: Buffer, from: number, to: number, take: Take): Wrong | undefined {
    const before = this.#deframer.room;
    let unreadable: FramingRefusal | undefined;
    const fault = this.#deframer.take(bytes, from, to, (part, begin, end, isCompressed) => {
      if (!isCompressed) return take(part, begin, end);
      const plain = decompress(part.subarray(begin, end), this.#encoding);
      if (!(plain instanceof FramingRefusal)) return take(plain, 0, plain.length);
      unreadable = plain;
      return false;
    });
    if (this.#deframer.room !== before) this.#its.held.add(this.#deframer.room - before);
    if (unreadable !== undefined) return unreadable;
    return fault === undefined ? this.#tooMuch() : FRAMING[fault];
  }

  /** Hands on what was kept and is wanted now. */
  takeKept(take: Take): Wrong | undefined {
    return this.#deframer.kept === 0 ? undefined : this.take(EMPTY, 0, 0, take);
  }

  /** Keeps nothing any more. To be called when the call is over. */
  forget(): void {
    this.#its.held.add(-this.#deframer.room);
    this.#deframer.clear();
  }

  #tooMuch(): Wrong | undefined {
    if (this.#deframer.room === 0 || !this.#its.held.isTooMuch) return undefined;
    return tooMuchWaits();
  }
}
