import type { IncomingMessage } from "node:http";
import { HttpRefusal } from "../answers.ts";

/** The largest valid request has some 5 KiB in bytes, and several times that in JSON with all its letters escaped. */
export const MAX_BODY_BYTES: number = 64 * 1_024;
/** In which a body may come. Each costs a microsecond, however small it is. */
export const MAX_PIECES = 1_024;
/** Buffers that a body has outgrown stay until the next collection: of a factor of 2 as much as the body, of 4 a third. */
const GROWTH = 4;
const NOTHING: Buffer = Buffer.alloc(0);

/**
 * The body of a request, as it comes. It takes about as much memory as it has bytes, in however small chunks it comes: each
 * chunk by itself takes some 300 bytes more.
 */
export class Body {
  readonly #message: IncomingMessage;
  /** Is told how much more memory it takes. */
  readonly #onKept: (bytes: number) => void;
  readonly #whole = Promise.withResolvers<Buffer>();
  readonly #onData = (chunk: Buffer): void => this.#add(chunk);
  /** How long it says that it is. */
  readonly #promised: number;
  #bytes = NOTHING;
  #length = 0;
  #pieces = 0;
  #isOver = false;

  /** Reads it. What is too much stays in the socket. */
  constructor(message: IncomingMessage, onKept: (bytes: number) => void) {
    this.#message = message;
    this.#onKept = onKept;
    this.#promised = Number(message.headers["content-length"] ?? 0);
    if (this.#promised > MAX_BODY_BYTES) {
      this.breakOff(tooLarge());
      return;
    }
    message.on("data", this.#onData);
    message.once("end", () => {
      this.#isOver = true;
      this.#whole.resolve(this.#bytes.subarray(0, this.#length));
    });
    // After an end nobody hears of it.
    message.once("close", () =>
      this.breakOff(new HttpRefusal(400, "canceled", "the body did not come whole")),
    );
    message.once("error", () => undefined);
  }

  /** Rejects with HttpRefusal. */
  get whole(): Promise<Buffer> {
    return this.#whole.promise;
  }

  /** Whether more of it is wanted. */
  get isComing(): boolean {
    return !this.#isOver;
  }

  /** No more of it is wanted. */
  breakOff(why: HttpRefusal): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#message.off("data", this.#onData);
    this.#whole.reject(why);
    this.forget();
  }

  /** Whoever wanted it has had it. */
  forget(): void {
    this.#keep(NOTHING);
  }

  #add(chunk: Buffer): void {
    const length = this.#length + chunk.length;
    this.#pieces++;
    if (this.#pieces > MAX_PIECES) {
      const text = `the body comes in more than ${MAX_PIECES} pieces`;
      this.breakOff(new HttpRefusal(413, "resource_exhausted", text));
      return;
    }
    if (length > MAX_BODY_BYTES) {
      this.breakOff(tooLarge());
      return;
    }
    // Most bodies come in one chunk.
    if (this.#length === 0) this.#keep(chunk);
    else {
      if (length > this.#bytes.length) this.#grow(length);
      chunk.copy(this.#bytes, this.#length);
    }
    this.#length = length;
  }

  #grow(least: number): void {
    const size = this.#promised || Math.min(GROWTH * this.#bytes.length, MAX_BODY_BYTES);
    const larger = Buffer.allocUnsafeSlow(Math.max(least, size));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#keep(larger);
  }

  #keep(bytes: Buffer): void {
    const more = bytes.length - this.#bytes.length;
    this.#bytes = bytes;
    if (more !== 0) this.#onKept(more);
  }
}

function tooLarge(): HttpRefusal {
  const text = `the body is larger than ${MAX_BODY_BYTES} bytes`;
  return new HttpRefusal(413, "resource_exhausted", text);
}
