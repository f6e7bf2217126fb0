import {
  assertFrame,
  CODE,
  type Code,
  ConnectionError,
  FIRST_WINDOW,
  FLAG,
  FRAME,
  MAX_WINDOW,
  paddingOf,
} from "./frames.ts";
import type { Guard } from "./guard.ts";
import { Trailers } from "./head.ts";
import { HeaderBlock } from "./header-block.ts";
import { HpackDecoder } from "./hpack/decoder.ts";
import { type ConnectionLimits, type Held, STREAM_BYTES } from "./limits.ts";
import type { Out } from "./out.ts";
import type { PeerSettings } from "./peer-settings.ts";
import type { ReceiveWindow } from "./receive-window.ts";
import type { Sender } from "./sender.ts";
import type { Stream } from "./stream.ts";
import type { Streams } from "./streams.ts";

const EMPTY: Buffer = Buffer.alloc(0);
/** A frame of DATA with fewer bytes than this, in which no message ends, is a crumb; so many in a row are nothing. */
const CRUMB_BYTES = 64;
const FREE_CRUMBS = 4;
/** Beside the flags of a frame, which have eight bits: a header block that must be decoded and may not begin a stream. */
const IS_MALFORMED = 0x100;

/**
 * A request began: its head is in `stream.head`, or is too large to be known. Sets `stream.user`, unless it answers at once.
 * Neither this nor what the user does throws.
 */
export type Open = (stream: Stream, isTooLarge: boolean) => void;

export interface RequestsPorts {
  readonly out: Out;
  readonly sender: Sender;
  readonly streams: Streams;
  readonly window: ReceiveWindow;
  readonly guard: Guard;
  readonly peer: PeerSettings;
  readonly limits: ConnectionLimits;
  readonly held: Held;
  /** A stream is closed. */
  readonly closed: () => void;
}

/** The requests of a connection: how streams begin, what comes on them, how they end (RFC 9113, 5.1, 6 and 8.1). */
export class Requests {
  readonly #its: RequestsPorts;
  readonly #hpack: HpackDecoder;
  #open!: Open;
  /** A header block that goes on. */
  #block: HeaderBlock | undefined;
  /** Streams beyond it are left unanswered. */
  lastTaken: number = MAX_WINDOW;

  constructor(its: RequestsPorts) {
    this.#its = its;
    this.#hpack = new HpackDecoder(its.limits.headerListBytes, (bytes) => its.held.begin(bytes));
  }

  /** To be called once, before anything comes. */
  begin(open: Open): void {
    this.#open = open;
  }

  /** Only the rest of a header block may come, on its stream (RFC 9113, 4.3). */
  assertInOrder(type: number, id: number): void {
    if (this.#block === undefined || (type === FRAME.CONTINUATION && id === this.#block.id)) return;
    throw new ConnectionError(CODE.PROTOCOL_ERROR, "a header block was left before its end");
  }

  data(flags: number, id: number, bytes: Buffer, from: number, to: number): void {
    this.#assertNotIdle(id);
    // All of the payload counts, padding too (RFC 9113, 6.9.1), whatever becomes of the stream.
    this.#its.window.take(to - from);
    const padding = paddingOf(flags, bytes, from, to);
    const begin = (flags & FLAG.PADDED) === 0 ? from : from + 1;
    const end = to - padding;
    const isLast = (flags & FLAG.END_STREAM) !== 0;
    const stream = this.#its.streams.get(id);
    if (stream === undefined || stream.isRemoteDone) return this.#onClosed(id);
    stream.receiveWindow -= to - from;
    if (stream.receiveWindow < 0) return this.reset(stream, CODE.FLOW_CONTROL_ERROR);
    stream.received += end - begin;
    if (!isRightLength(stream, isLast)) return this.reset(stream, CODE.PROTOCOL_ERROR);
    if (isLast) this.#wholeRequest(stream);
    stream.unacknowledged += to - from;
    const isOfUse = stream.user?.received(bytes, begin, end, isLast);
    if (isOfUse === true || isLast || end - begin >= CRUMB_BYTES) stream.crumbs = 0;
    else if (++stream.crumbs > FREE_CRUMBS) void this.#its.guard.useless("DATA");
    if (!stream.isRemoteDone && !stream.isPaused) this.#its.window.giveBack(stream);
    this.#closeIfDone(stream);
  }

  headers(flags: number, id: number, bytes: Buffer, from: number, to: number): void {
    assertFrame(id % 2 === 1, CODE.PROTOCOL_ERROR, "HEADERS on a stream that no client begins");
    const end = to - paddingOf(flags, bytes, from, to);
    let begin = (flags & FLAG.PADDED) === 0 ? from : from + 1;
    let known = flags;
    if ((flags & FLAG.PRIORITY) !== 0) {
      assertFrame(end - begin >= 5, CODE.FRAME_SIZE_ERROR, "HEADERS too short");
      // A stream that depends on itself (RFC 7540, 5.3.1).
      if ((bytes.readUInt32BE(begin) & MAX_WINDOW) === id) known |= IS_MALFORMED;
      begin += 5;
    }
    if ((flags & FLAG.END_HEADERS) !== 0) {
      this.#wholeBlock(known, id, bytes, begin, end);
      return;
    }
    this.#block = new HeaderBlock(id, known, this.#its.limits, this.#its.held);
    this.#block.add(bytes, begin, end);
  }

  continuation(flags: number, bytes: Buffer, from: number, to: number): void {
    const block = this.#block;
    if (block === undefined) {
      throw new ConnectionError(CODE.PROTOCOL_ERROR, "CONTINUATION of no header block");
    }
    block.add(bytes, from, to);
    if ((flags & FLAG.END_HEADERS) === 0) return;
    this.#block = undefined;
    const whole = block.whole();
    this.#wholeBlock(block.flags, block.id, whole, 0, whole.length);
  }

  /** A header block begins a stream, or ends what comes on one. It is decoded in any case. */
  #wholeBlock(flags: number, id: number, bytes: Buffer, from: number, to: number): void {
    const isLast = (flags & FLAG.END_STREAM) !== 0;
    const streams = this.#its.streams;
    if (id <= streams.last) return this.#trailers(isLast, id, bytes, from, to);
    streams.last = id;
    const stream = streams.unused();
    const { head } = stream;
    const size = this.#hpack.decode(bytes, from, to, head.take);
    head.end();
    const isTooLarge = size > this.#its.limits.headerListBytes;
    if (isLast && head.contentLength > 0) head.fault ||= "a content-length without a body";
    const isMalformed = (!isTooLarge && head.fault !== "") || (flags & IS_MALFORMED) !== 0;
    const isRefused = streams.slots >= this.#its.limits.streams;
    if (id > this.lastTaken || isMalformed || isRefused) {
      streams.giveBack(stream);
      if (id > this.lastTaken) return;
      this.#rst(id, isMalformed ? CODE.PROTOCOL_ERROR : CODE.REFUSED_STREAM);
      return;
    }
    stream.begin(id, this.#its.peer.initialWindow, FIRST_WINDOW);
    if (isLast) stream.isRemoteDone = true;
    else this.#its.held.add((stream.headBytes = size + STREAM_BYTES));
    streams.open(stream);
    if (isTooLarge && this.#its.guard.useless("metadata above the limit")) return;
    this.#open(stream, isTooLarge);
    if (isLast) this.#complete(stream, id);
  }

  #trailers(isLast: boolean, id: number, bytes: Buffer, from: number, to: number): void {
    const trailers = new Trailers();
    const size = this.#hpack.decode(bytes, from, to, trailers.take);
    const stream = this.#its.streams.get(id);
    if (stream === undefined || stream.isRemoteDone) {
      // RFC 9113, 5.1: on a stream that its peer ended this is an error; on one that we ended it was under way.
      if (stream === undefined && this.#wasUnderWay(id))
        return void this.#its.guard.useless("trailers");
      throw new ConnectionError(CODE.STREAM_CLOSED, "HEADERS on a stream that is closed");
    }
    const isWrong = !isLast || trailers.fault !== "" || size > this.#its.limits.headerListBytes;
    if (isWrong || !isRightLength(stream, true)) return this.reset(stream, CODE.PROTOCOL_ERROR);
    this.#wholeRequest(stream);
    this.#complete(stream, id);
  }

  /** A request ended without bytes. Its stream may be closed already, or another one's. */
  #complete(stream: Stream, id: number): void {
    if (this.#its.streams.get(id) !== stream) return;
    stream.user?.received(EMPTY, 0, 0, true);
    this.#closeIfDone(stream);
  }

  windowUpdate(id: number, bytes: Buffer, from: number, to: number): void {
    assertFrame(to - from === 4, CODE.FRAME_SIZE_ERROR, "a WINDOW_UPDATE of another size");
    const more = bytes.readUInt32BE(from) & MAX_WINDOW;
    if (id !== 0) this.#assertNotIdle(id);
    const stream = this.#its.streams.get(id);
    if (id !== 0 && stream === undefined) return void this.#its.guard.useless("WINDOW_UPDATE");
    if (more === 0) {
      if (stream !== undefined) return this.reset(stream, CODE.PROTOCOL_ERROR);
      throw new ConnectionError(CODE.PROTOCOL_ERROR, "a WINDOW_UPDATE by nothing");
    }
    if (stream !== undefined && stream.sendWindow + more > MAX_WINDOW) {
      return this.reset(stream, CODE.FLOW_CONTROL_ERROR);
    }
    if (!this.#its.sender.mayPass(more, stream)) void this.#its.guard.useless("WINDOW_UPDATE");
    assertFrame(this.#its.sender.isRight, CODE.FLOW_CONTROL_ERROR, "a window too large");
  }

  rstStream(id: number, length: number): void {
    assertFrame(length === 4, CODE.FRAME_SIZE_ERROR, "a RST_STREAM of another size");
    this.#assertNotIdle(id);
    if (this.#its.guard.reset()) return;
    const stream = this.#its.streams.get(id);
    if (stream === undefined) return;
    this.#wholeRequest(stream);
    stream.isLocalDone = true;
    this.#close(stream);
  }

  /** Priorities are ignored (RFC 9113, 5.3.2), but not what is wrong with them. */
  priority(id: number, bytes: Buffer, from: number, to: number): void {
    assertFrame(id !== 0, CODE.PROTOCOL_ERROR, "PRIORITY on no stream");
    void this.#its.guard.useless("PRIORITY");
    const isWrong = to - from !== 5;
    if (!isWrong && (bytes.readUInt32BE(from) & MAX_WINDOW) !== id) return;
    const code = isWrong ? CODE.FRAME_SIZE_ERROR : CODE.PROTOCOL_ERROR;
    const stream = this.#its.streams.get(id);
    if (stream !== undefined) this.reset(stream, code);
    // RST_STREAM may not be sent on a stream that is idle.
    else if (id > this.#its.streams.last)
      throw new ConnectionError(code, "a PRIORITY that is wrong");
    else this.#rst(id, code);
  }

  // —— How streams end ——

  /** The last frame of an answer was sent. */
  answered(stream: Stream): void {
    stream.isLocalDone = true;
    if (stream.isRemoteDone) this.#closeIfDone(stream);
    // gRPC: an answer before the end of its request ends both (RFC 9113, 8.1).
    else this.reset(stream, CODE.NO_ERROR);
  }

  /** The connection is over, and with it all streams. */
  end(): void {
    this.#block?.forget();
    this.#block = undefined;
    this.#hpack.forget();
    for (const stream of this.#its.streams.clear()) {
      stream.isLocalDone = true;
      this.#wholeRequest(stream);
      this.#its.sender.forget(stream);
      if (stream.user === undefined) this.#its.streams.free(stream);
      else stream.user.aborted();
    }
  }

  /** Ends a stream at once. */
  reset(stream: Stream, code: Code): void {
    this.#rst(stream.id, code);
    stream.isLocalDone = true;
    this.#wholeRequest(stream);
    this.#close(stream);
  }

  /** The user is done with a stream that is over. */
  release(stream: Stream): void {
    stream.user = undefined;
    if (stream.isLocalDone && stream.isRemoteDone) this.#its.streams.free(stream);
  }

  /** Lets the peer send on, as much as a pause held back. */
  resume(stream: Stream): void {
    if (!stream.isPaused) return;
    stream.isPaused = false;
    if (!stream.isRemoteDone) this.#its.window.giveBack(stream);
  }

  /**
   * Nothing more comes on a stream. What it kept until then was counted: a peer that never ends its requests may have as many
   * as there are places, each with a head of its own.
   */
  #wholeRequest(stream: Stream): void {
    if (stream.isRemoteDone) return;
    stream.isRemoteDone = true;
    this.#its.held.add(-stream.headBytes);
  }

  #closeIfDone(stream: Stream): void {
    if (stream.isLocalDone && stream.isRemoteDone) this.#close(stream);
  }

  #close(stream: Stream): void {
    if (!this.#its.streams.close(stream)) return;
    this.#its.sender.forget(stream);
    if (stream.user === undefined) this.#its.streams.free(stream);
    else stream.user.aborted();
    this.#its.closed();
  }

  /** Something came on a stream that its peer ended, or that we did: it may have been under way then. */
  #onClosed(id: number): void {
    if (this.#wasUnderWay(id)) return void this.#its.guard.useless("DATA");
    const stream = this.#its.streams.get(id);
    if (stream === undefined) this.#rst(id, CODE.STREAM_CLOSED);
    else this.reset(stream, CODE.STREAM_CLOSED);
  }

  #wasUnderWay(id: number): boolean {
    return id > this.lastTaken || this.#its.streams.wasReset(id);
  }

  #rst(id: number, code: Code): void {
    // An answer before the end of its request is an answer like others.
    if (code !== CODE.NO_ERROR && this.#its.guard.reset()) return;
    this.#its.streams.rememberReset(id);
    this.#its.out.number(FRAME.RST_STREAM, id, code);
  }

  #assertNotIdle(id: number): void {
    const isKnown = id <= this.#its.streams.last && id % 2 === 1;
    assertFrame(isKnown, CODE.PROTOCOL_ERROR, "a stream that is idle");
  }
}

/** Whether a body has the length that its head says (RFC 9113, 8.1.1). */
function isRightLength({ head, received }: Stream, isLast: boolean): boolean {
  const { contentLength } = head;
  return contentLength < 0 || (isLast ? received === contentLength : received <= contentLength);
}
