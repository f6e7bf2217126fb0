import { FLAG, FRAME, FIRST_WINDOW, MAX_FRAME_BYTES, MAX_WINDOW } from "./frames.ts";
import { type Held, STREAM_BYTES } from "./limits.ts";
import type { Out } from "./out.ts";
import type { PeerSettings } from "./peer-settings.ts";
import { ResponseHeads } from "./response-heads.ts";
import { END, type End, type Stream } from "./stream.ts";

/** Before each message of gRPC: whether it is compressed, and its length. */
const PREFIX_BYTES = 5;
const NOTHING: Buffer = Buffer.alloc(0);
/** Updates of windows that let out fewer bytes than this are a way to make us send frames of nothing (CVE-2019-9511). */
const DRIBBLE = 256;

/**
 * What a connection sends on its streams, within the windows that the peer gives (RFC 9113, 5.2 and 6.9).
 *
 * INVARIANT: what is sent on a stream is in order, and DATA is never more than both windows. What does not fit waits in its
 * stream, counted in `held`; headers never wait, except behind the data of their stream.
 */
export class Sender {
  readonly #out: Out;
  readonly #heads: ResponseHeads;
  /** The last frame of an answer was sent. */
  readonly #sentAll: (stream: Stream) => void;
  readonly #held: Held;
  /** Streams whose answers wait for a window, in turns. */
  readonly #blocked = new Set<Stream>();
  #window = FIRST_WINDOW;

  constructor(out: Out, peer: PeerSettings, held: Held, sentAll: (stream: Stream) => void) {
    this.#out = out;
    this.#heads = new ResponseHeads(peer);
    this.#held = held;
    this.#sentAll = sentAll;
  }

  /** Where messages are written that `message` made room for. */
  get bytes(): Buffer {
    return this.#out.bytes;
  }

  /** Whether a message of this many bytes may be sent at once. */
  takes(stream: Stream, length: number): boolean {
    return stream.waitingBytes === 0 && this.#fits(stream, PREFIX_BYTES + length);
  }

  /**
   * A message that the peer `takes`, but for its bytes: they are to be written into `bytes` at what this answers, before
   * anything else is sent.
   */
  message(stream: Stream, length: number): number {
    const whole = PREFIX_BYTES + length;
    const at = this.#out.frame(FRAME.DATA, 0, stream.id, whole);
    const { bytes } = this.#out;
    bytes[at] = 0;
    bytes[at + 1] = length >>> 24;
    bytes[at + 2] = length >>> 16;
    bytes[at + 3] = length >>> 8;
    bytes[at + 4] = length;
    this.#spend(stream, whole);
    return at + PREFIX_BYTES;
  }

  /** The head of an answer that has messages. */
  head(stream: Stream): void {
    this.#headers(stream, this.#heads.head(), 0);
  }

  /** The head of an answer that is none of gRPC. */
  otherHead(stream: Stream, block: Uint8Array): void {
    this.#headers(stream, this.#heads.plain(block), 0);
  }

  /** Bytes of an answer. Answers whether all were sent; otherwise the rest waits for the peer, and `drained` tells. */
  data(stream: Stream, bytes: Uint8Array): boolean {
    if (stream.waitingBytes === 0 && this.#fits(stream, bytes.length)) {
      this.#out.whole(FRAME.DATA, 0, stream.id, bytes);
      this.#spend(stream, bytes.length);
      return true;
    }
    // Whoever made the bytes may use their memory again.
    stream.waiting.push({ bytes: Buffer.from(bytes), from: 0 });
    stream.waitingBytes += bytes.length;
    this.#held.add(bytes.length + STREAM_BYTES);
    this.#blocked.add(stream);
    while (this.#sendOne(stream));
    if (stream.waitingBytes > 0) return false;
    this.#blocked.delete(stream);
    return true;
  }

  /** The end of an answer, behind all of its bytes. */
  end(stream: Stream, end: End): void {
    if (stream.waitingBytes > 0) {
      stream.end = end;
      return;
    }
    if (end === END.NOTHING) this.#out.whole(FRAME.DATA, FLAG.END_STREAM, stream.id, NOTHING);
    else {
      const block = end === END.OK ? this.#heads.end() : this.#heads.plain(end);
      this.#headers(stream, block, FLAG.END_STREAM);
    }
    this.#sentAll(stream);
  }

  /** The peer takes more on the connection, or on a stream. Answers whether that was of use, if anybody waited for it. */
  mayPass(more: number, stream: Stream | undefined): boolean {
    if (stream === undefined) this.#window += more;
    else stream.sendWindow += more;
    if (this.#blocked.size === 0 || (stream !== undefined && stream.waitingBytes === 0))
      return true;
    const before = this.#window;
    if (stream === undefined) this.pump();
    else {
      while (this.#sendOne(stream));
      this.#after(stream);
    }
    return before - this.#window >= DRIBBLE;
  }

  /** Whether the window of the connection is one. */
  get isRight(): boolean {
    return this.#window <= MAX_WINDOW;
  }

  /** Sends what waits, a frame of each stream in turns, so that none of them takes the whole window. */
  pump(): void {
    for (const stream of this.#blocked) {
      if (this.#window <= 0) return;
      if (!this.#sendOne(stream)) continue;
      // Behind the others, where this loop finds it again.
      this.#blocked.delete(stream);
      if (stream.waitingBytes > 0) this.#blocked.add(stream);
      else this.#after(stream);
    }
  }

  /** The stream is closed. */
  forget(stream: Stream): void {
    if (stream.waitingBytes === 0) return;
    this.#blocked.delete(stream);
    this.#held.add(-stream.waitingBytes - stream.waiting.length * STREAM_BYTES);
    stream.waitingBytes = 0;
    stream.waiting.length = 0;
  }

  #headers(stream: Stream, block: Uint8Array, flags: number): void {
    if (block.length <= MAX_FRAME_BYTES) {
      this.#out.whole(FRAME.HEADERS, FLAG.END_HEADERS | flags, stream.id, block);
      return;
    }
    this.#out.whole(FRAME.HEADERS, flags, stream.id, block.subarray(0, MAX_FRAME_BYTES));
    for (let at = MAX_FRAME_BYTES; at < block.length; at += MAX_FRAME_BYTES) {
      const isLast = at + MAX_FRAME_BYTES >= block.length;
      const part = block.subarray(at, at + MAX_FRAME_BYTES);
      this.#out.whole(FRAME.CONTINUATION, isLast ? FLAG.END_HEADERS : 0, stream.id, part);
    }
  }

  /** Largest frames are those of HTTP/2's own limit, which each peer takes (RFC 9113, 4.2). */
  #fits(stream: Stream, length: number): boolean {
    return length <= stream.sendWindow && length <= this.#window && length <= MAX_FRAME_BYTES;
  }

  #spend(stream: Stream, length: number): void {
    stream.sendWindow -= length;
    this.#window -= length;
  }

  #sendOne(stream: Stream): boolean {
    const [first] = stream.waiting;
    if (first === undefined) return false;
    const left = first.bytes.length - first.from;
    const length = Math.min(left, stream.sendWindow, this.#window, MAX_FRAME_BYTES);
    if (length <= 0) return false;
    const part = first.bytes.subarray(first.from, first.from + length);
    this.#out.whole(FRAME.DATA, 0, stream.id, part);
    this.#spend(stream, length);
    stream.waitingBytes -= length;
    this.#held.add(-length);
    first.from += length;
    if (first.from < first.bytes.length) return true;
    this.#held.add(-STREAM_BYTES);
    stream.waiting.shift();
    return true;
  }

  #after(stream: Stream): void {
    if (stream.waitingBytes > 0) return;
    this.#blocked.delete(stream);
    if (stream.end === undefined) stream.user?.drained();
    else this.end(stream, stream.end);
  }
}
