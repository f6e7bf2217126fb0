/** Before each message of gRPC: a flag that says whether it is compressed, and its length. */
export const PREFIX_BYTES = 5;
/** Largest message of a request, compressed or not. */
export const MAX_MESSAGE_BYTES: number = 16 * 1_024;
/** What is kept at least, so that what comes byte by byte is not copied each time. */
const LEAST_KEPT = 256;

/**
 * One message: its bytes between `from` and `to`, and whether they are compressed. They are valid until this returns. Answers
 * whether the next one is wanted at once; otherwise it waits.
 */
export type TakeMessage = (
  bytes: Buffer,
  from: number,
  to: number,
  isCompressed: boolean,
) => boolean;

/** Why a stream of bytes is none of messages. */
export type FramingFault = "flag" | "tooLarge";

/** Puts the messages of one stream together. Keeps what is not whole, and what is not wanted yet. */
export class Deframer {
  #kept: Buffer | undefined;
  #end = 0;

  /** Bytes that are kept. */
  get kept(): number {
    return this.#end;
  }

  /** The memory that they take. */
  get room(): number {
    return this.#kept?.length ?? 0;
  }

  clear(): void {
    this.#kept = undefined;
    this.#end = 0;
  }

  /** Takes the next bytes without looking at them. */
  keep(bytes: Buffer, from: number, to: number): void {
    const end = this.#end + to - from;
    if (this.#kept === undefined || this.#kept.length < end) {
      const larger = Buffer.allocUnsafe(Math.max(LEAST_KEPT, 2 * end));
      this.#kept?.copy(larger, 0, 0, this.#end);
      this.#kept = larger;
    }
    bytes.copy(this.#kept, this.#end, from, to);
    this.#end = end;
  }

  /**
   * Takes the next bytes and hands on each message that is whole. Answers what is wrong with them; nothing is to be taken after
   * that.
   */
  take(bytes: Buffer, from: number, to: number, message: TakeMessage): FramingFault | undefined {
    if (this.#end > 0) {
      this.keep(bytes, from, to);
      return this.#takeKept(message);
    }
    const at = messages(bytes, from, to, message);
    if (typeof at === "string") return at;
    if (at < to) this.keep(bytes, at, to);
    return undefined;
  }

  #takeKept(message: TakeMessage): FramingFault | undefined {
    const kept = this.#kept as Buffer;
    const at = messages(kept, 0, this.#end, message);
    if (typeof at === "string") return at;
    this.#end -= at;
    if (this.#end === 0) this.#kept = undefined;
    else if (at > 0) kept.copyWithin(0, at, at + this.#end);
    return undefined;
  }
}

/** Hands on the messages from `from` on. Answers where the first one begins that is not whole, or not wanted. */
function messages(
  bytes: Buffer,
  from: number,
  to: number,
  message: TakeMessage,
): number | FramingFault {
  let at = from;
  while (to - at >= PREFIX_BYTES) {
    const flag = bytes[at] ?? 0;
    const length = bytes.readUInt32BE(at + 1);
    if (flag > 1) return "flag";
    if (length > MAX_MESSAGE_BYTES) return "tooLarge";
    const next = at + PREFIX_BYTES + length;
    if (next > to) break;
    const isNextWanted = message(bytes, at + PREFIX_BYTES, next, flag === 1);
    at = next;
    if (!isNextWanted) break;
  }
  return at;
}
