import { FLAG, FRAME, FRAME_HEADER_BYTES } from "./frames.ts";
import type { Held } from "./limits.ts";

/** What is collected before it goes to the socket; larger than what one chunk of calls is answered with. */
export const SLAB_BYTES: number = 32 * 1_024;
/** Slabs that wait for their next use, of all connections. */
const MAX_FREE = 64;

const free: Buffer[] = [];

/** Takes bytes, in order; calls `done` when they are not needed any more, even if they were not sent. */
export type Write = (bytes: Buffer, done: () => void) => void;

/**
 * Frames on their way to a socket, written together.
 *
 * A slab belongs to its connection from the first frame until the socket is done with it, so nothing is copied, and a warm
 * connection allocates no memory outside the heap.
 *
 * Each counts whole in `held`, from its first frame until the socket is done with it: whoever does not read keeps two of them,
 * however little is in them.
 *
 * INVARIANT: all slabs that the socket has are full, except one. Otherwise a peer that does not read would hold a slab with
 * each of its answers. So nothing is handed over while the socket still has something, unless it fills a slab.
 */
export class Out {
  readonly #write: Write;
  readonly #held: Held;
  #slab: Buffer | undefined;
  #end = 0;
  #queued = 0;

  constructor(write: Write, held: Held) {
    this.#write = write;
    this.#held = held;
  }

  /** Bytes that the socket has not taken yet, those that are collected among them. */
  get queued(): number {
    return this.#queued + this.#end;
  }

  /** Begins a frame whose payload of `length` bytes the caller puts behind it. Answers where, in `bytes`. */
  frame(type: number, flags: number, stream: number, length: number): number {
    const bytes = this.#room(FRAME_HEADER_BYTES + length);
    const at = this.#end;
    bytes[at] = length >>> 16;
    bytes[at + 1] = length >>> 8;
    bytes[at + 2] = length;
    bytes[at + 3] = type;
    bytes[at + 4] = flags;
    bytes[at + 5] = stream >>> 24;
    bytes[at + 6] = stream >>> 16;
    bytes[at + 7] = stream >>> 8;
    bytes[at + 8] = stream;
    this.#end = at + FRAME_HEADER_BYTES + length;
    return at + FRAME_HEADER_BYTES;
  }

  /** Where `frame` put the last one. */
  get bytes(): Buffer {
    return this.#slab as Buffer;
  }

  /** A frame with this payload, at most MAX_FRAME_BYTES. */
  whole(type: number, flags: number, stream: number, payload: Uint8Array): void {
    const at = this.frame(type, flags, stream, payload.length);
    this.bytes.set(payload, at);
  }

  /** A frame whose payload is one number of 32 bits. */
  number(type: number, stream: number, value: number): void {
    const at = this.frame(type, 0, stream, 4);
    this.bytes.writeUInt32BE(value, at);
  }

  settings(values: readonly (readonly [setting: number, value: number])[]): void {
    let at = this.frame(FRAME.SETTINGS, 0, 0, values.length * 6);
    for (const [setting, value] of values) {
      at = this.bytes.writeUInt16BE(setting, at);
      at = this.bytes.writeUInt32BE(value, at);
    }
  }

  settingsAck(): void {
    this.frame(FRAME.SETTINGS, FLAG.ACK, 0, 0);
  }

  goAway(lastStream: number, code: number, why: string): void {
    const text = Buffer.from(why, "latin1");
    const at = this.frame(FRAME.GOAWAY, 0, 0, 8 + text.length);
    this.bytes.writeUInt32BE(lastStream, at);
    this.bytes.writeUInt32BE(code, at + 4);
    this.bytes.set(text, at + 8);
  }

  /** Hands over what was collected, as soon as the socket has nothing else. */
  flush(): void {
    if (this.#queued === 0) this.handOver();
  }

  /** Hands over what was collected. */
  handOver(): void {
    const slab = this.#slab;
    if (slab === undefined || this.#end === 0) return;
    const length = this.#end;
    this.#slab = undefined;
    this.#end = 0;
    this.#queued += length;
    this.#held.add(length);
    this.#held.lend(-length);
    this.#write(slab.subarray(0, length), () => {
      this.#queued -= length;
      this.#held.add(-length);
      this.#held.lend(length - SLAB_BYTES);
      if (free.length < MAX_FREE) free.push(slab);
      this.flush();
    });
  }

  #room(bytes: number): Buffer {
    if (this.#end + bytes > SLAB_BYTES) this.handOver();
    if (this.#slab === undefined) {
      this.#slab = free.pop() ?? Buffer.allocUnsafeSlow(SLAB_BYTES);
      this.#held.lend(SLAB_BYTES);
    }
    return this.#slab;
  }
}
