import { type CallsOfConnection, tooMuchWaits } from "./call.ts";
import { FRAMING } from "./framing.ts";
import { Incoming, type Wrong } from "./incoming.ts";

/**
 * The only message of a call, where it comes in parts, compressed, or not alone.
 *
 * INVARIANT: a message that is whole is counted in `held` until it is forgotten: the end of its request may never come.
 */
export class OneMessage {
  readonly #its: CallsOfConnection;
  readonly #incoming: Incoming;
  #message: Buffer | undefined;

  constructor(its: CallsOfConnection, encoding: string) {
    this.#its = its;
    this.#incoming = new Incoming(its, encoding);
  }

  /** The message, once it is whole. */
  get message(): Buffer | undefined {
    return this.#message;
  }

  /** Takes the next bytes. Answers why the call cannot go on. Behind the last ones, the message is there otherwise. */
  take(bytes: Buffer, from: number, to: number, isLast: boolean): Wrong | undefined {
    let count = this.#message === undefined ? 0 : 1;
    const wrong = this.#incoming.take(bytes, from, to, (part, begin, end) => {
      count++;
      if (count === 1) this.#keep(Buffer.from(part.subarray(begin, end)));
      return count === 1;
    });
    if (wrong !== undefined) return wrong;
    if (count > 1) return FRAMING.several;
    if (!isLast) return count > 0 && this.#its.held.isTooMuch ? tooMuchWaits() : undefined;
    if (!this.#incoming.isEmpty) return FRAMING.half;
    return count === 0 ? FRAMING.none : undefined;
  }

  /** Keeps nothing any more. To be called when the call is over, or its message is taken. */
  forget(): void {
    this.#incoming.forget();
    this.#its.held.add(-(this.#message?.length ?? 0));
    this.#message = undefined;
  }

  #keep(message: Buffer): void {
    this.#message = message;
    this.#its.held.add(message.length);
  }
}
