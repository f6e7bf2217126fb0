import { type CallsOfConnection, malformed, type Row } from "./call.ts";
import { Incoming } from "./incoming.ts";

/** The only message of a call, where it comes in parts, compressed, or not alone. */
export class OneMessage {
  readonly #row: Row;
  readonly #incoming: Incoming;
  #message: Buffer | undefined;

  constructor(its: CallsOfConnection, row: Row, encoding: string) {
    this.#row = row;
    this.#incoming = new Incoming(its, encoding);
  }

  /** The message, once it is whole. */
  get message(): Buffer | undefined {
    return this.#message;
  }

  /** Takes the next bytes. Answers why the call cannot go on. Behind the last ones, the message is there otherwise. */
  take(bytes: Buffer, from: number, to: number, isLast: boolean): Error | undefined {
    const row = this.#row;
    let count = this.#message === undefined ? 0 : 1;
    const wrong = this.#incoming.take(row, bytes, from, to, (part, begin, end) => {
      count++;
      this.#message = Buffer.from(part.subarray(begin, end));
      return count === 1;
    });
    if (wrong !== undefined) return wrong;
    if (count > 1) return malformed(row, "more than one message in a call");
    if (!isLast) return undefined;
    if (!this.#incoming.isEmpty) return malformed(row, "half a message in a call");
    return count === 0 ? malformed(row, "no message in a call") : undefined;
  }

  /** Keeps nothing any more. To be called when the call is over. */
  forget(): void {
    this.#incoming.forget();
    this.#message = undefined;
  }
}
