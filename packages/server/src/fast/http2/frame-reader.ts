import {
  CODE,
  ConnectionError,
  FRAME_HEADER_BYTES,
  MAX_FRAME_BYTES,
  MAX_WINDOW,
  PREFACE,
} from "./frames.ts";
import type { Held } from "./limits.ts";

const EMPTY: Buffer = Buffer.alloc(0);
/** What a part of a frame takes at first; it grows with what comes, not with what is promised. */
const FIRST_ROOM = 256;

/** Takes frames. The bytes are valid until it returns. */
export type TakeFrame = (
  type: number,
  flags: number,
  id: number,
  bytes: Buffer,
  from: number,
  to: number,
) => void;

/**
 * Cuts what comes into the preface and frames (RFC 9113, 3.4 and 4.1), wherever its chunks end.
 *
 * Frames are taken where they lie. Only one that is cut by the end of a chunk is copied, and no more of it than is needed.
 *
 * INVARIANT: the room of such a part is counted in `held` as long as it is kept.
 */
export class FrameReader {
  readonly #take: TakeFrame;
  readonly #held: Pick<Held, "begin">;
  #matched = 0;
  /** The part of a frame that came, and how long it is. */
  #part: Buffer = EMPTY;
  #length = 0;
  #isOver = false;

  constructor(take: TakeFrame, held: Pick<Held, "begin">) {
    this.#take = take;
    this.#held = held;
  }

  /** Whether the peer showed that it speaks HTTP/2. */
  get hasPreface(): boolean {
    return this.#matched === PREFACE.length;
  }

  read(chunk: Buffer): void {
    let at = this.hasPreface ? 0 : this.#preface(chunk);
    if (!this.hasPreface) return;
    if (this.#length > 0) at = this.#complete(chunk, at);
    at = this.#whole(chunk, at);
    if (at < chunk.length && !this.#isOver) this.#keep(chunk, at, chunk.length, chunk.length - at);
  }

  /** Takes nothing any more. */
  stop(): void {
    this.#isOver = true;
    this.#forgetPart();
  }

  #preface(chunk: Buffer): number {
    const length = Math.min(chunk.length, PREFACE.length - this.#matched);
    if (PREFACE.compare(chunk, 0, length, this.#matched, this.#matched + length) !== 0) {
      throw new ConnectionError(CODE.PROTOCOL_ERROR, "this is no HTTP/2");
    }
    this.#matched += length;
    return length;
  }

  /** Takes all whole frames from `start` on. Answers where the first one begins that is not whole. */
  #whole(bytes: Buffer, start: number): number {
    let at = start;
    while (bytes.length - at >= FRAME_HEADER_BYTES) {
      const to = at + FRAME_HEADER_BYTES + lengthAt(bytes, at);
      if (to > bytes.length) break;
      this.#frame(bytes, at, to);
      if (this.#isOver) return bytes.length;
      at = to;
    }
    return at;
  }

  /** Goes on with the frame that a chunk before cut. Answers what of this one belongs to it. */
  #complete(chunk: Buffer, start: number): number {
    let at = start;
    if (this.#length < FRAME_HEADER_BYTES) {
      const head = Math.min(chunk.length - at, FRAME_HEADER_BYTES - this.#length);
      this.#keep(chunk, at, at + head, FRAME_HEADER_BYTES);
      at += head;
      if (this.#length < FRAME_HEADER_BYTES) return at;
    }
    const total = FRAME_HEADER_BYTES + lengthAt(this.#part, 0);
    const end = Math.min(chunk.length, at + total - this.#length);
    this.#keep(chunk, at, end, total);
    if (this.#length < total) return end;
    const part = this.#part;
    this.#forgetPart();
    this.#frame(part, 0, total);
    return this.#isOver ? chunk.length : end;
  }

  #keep(chunk: Buffer, from: number, to: number, most: number): void {
    const length = this.#length + to - from;
    if (length > this.#part.length) {
      const room = Math.max(length, Math.min(most, Math.max(FIRST_ROOM, 2 * length)));
      // Of its own memory: a part would keep all of Node's pool, which is not counted.
      const part = Buffer.allocUnsafeSlow(room);
      part.set(this.#part.subarray(0, this.#length));
      this.#held.begin(room - this.#part.length);
      this.#part = part;
    }
    chunk.copy(this.#part, this.#length, from, to);
    this.#length = length;
  }

  #forgetPart(): void {
    this.#held.begin(-this.#part.length);
    this.#part = EMPTY;
    this.#length = 0;
  }

  #frame(bytes: Buffer, at: number, to: number): void {
    const id = bytes.readUInt32BE(at + 5) & MAX_WINDOW;
    const from = at + FRAME_HEADER_BYTES;
    this.#take(bytes[at + 3] ?? 0, bytes[at + 4] ?? 0, id, bytes, from, to);
  }
}

/** The length of the frame whose head is at `at`. */
function lengthAt(bytes: Buffer, at: number): number {
  const length = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
  if (length > MAX_FRAME_BYTES) {
    throw new ConnectionError(CODE.FRAME_SIZE_ERROR, "a frame above SETTINGS_MAX_FRAME_SIZE");
  }
  return length;
}
