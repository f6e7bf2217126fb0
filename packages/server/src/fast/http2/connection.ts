import {
  assertFrame,
  CODE,
  type Code,
  ConnectionError,
  FLAG,
  FRAME,
  MAX_WINDOW,
  SETTING,
} from "./frames.ts";
import { FrameReader } from "./frame-reader.ts";
import { Guard } from "./guard.ts";
import { HpackError, TABLE_BYTES } from "./hpack/decoder.ts";
import type { Lifetime } from "./lifetime.ts";
import type { ConnectionLimits, Held } from "./limits.ts";
import type { Out } from "./out.ts";
import { PeerSettings } from "./peer-settings.ts";
import { ReceiveWindow } from "./receive-window.ts";
import { type Open, Requests } from "./requests.ts";
import { Sender } from "./sender.ts";
import { Streams } from "./streams.ts";

/** What is read of a peer that was told to go. */
const MAX_DISCARDED_BYTES = 64 * 1_024;
/** What our PINGs carry: to find out whether the peer is there, and behind GOAWAY. */
const KEEPALIVE_PING: Buffer = Buffer.from("idmint-k", "latin1");
const LEAVE_PING: Buffer = Buffer.from("idmint-l", "latin1");

/** What a connection needs of its socket. */
export interface Wire {
  readonly out: Out;
  readonly held: Held;
  readonly lifetime: Lifetime;
  /** Milliseconds of a clock that is never set back, and of the time in which the server was awake. */
  now(): number;
  awake(): number;
  /** To be closed when all was sent and the peer has read it. */
  end(): void;
  /** To be closed at once. */
  destroy(): void;
  /** Something was thrown that nobody foresaw. */
  failed(cause: unknown): void;
}

/**
 * One connection of HTTP/2, the server's side (RFC 9113): bytes in, frames out, no I/O.
 *
 * - *open*: streams begin, are answered and end. Nothing is taken before the preface and the peer's SETTINGS.
 * - *going*: the peer is to hear GOAWAY as soon as it has shown that it reads: by an acknowledgement of our SETTINGS, or by a
 *   stream. Clients on gRPC's C core that find both in one read begin each call anew without a pause, until memory is full.
 * - *announced*: GOAWAY without a last stream was sent, and a PING behind it; streams that are under way still begin.
 * - *leaving*: GOAWAY with the last stream was sent; those beyond it are left unanswered.
 * - *over*: an error, or all is done; what comes is thrown away until the peer has read why.
 */
export class Connection {
  readonly #wire: Wire;
  readonly #out: Out;
  readonly #limits: ConnectionLimits;
  readonly #reader: FrameReader;
  readonly #streams = new Streams();
  readonly #window: ReceiveWindow;
  readonly #guard: Guard;
  /** What the peer wants of what we send. */
  readonly peer: PeerSettings = new PeerSettings();
  /** Sends on its streams. */
  readonly sender: Sender;
  /** What comes on its streams, and how they end. */
  readonly requests: Requests;
  #state: "open" | "going" | "announced" | "leaving" | "over" = "open";
  #hasSettings = false;
  #discarded = 0;

  constructor(wire: Wire, limits: ConnectionLimits) {
    const { out, held } = wire;
    this.#wire = wire;
    this.#out = out;
    this.#limits = limits;
    this.#reader = new FrameReader(
      (type, flags, id, bytes, from, to) => this.#frame(type, flags, id, bytes, from, to),
      held,
    );
    this.#window = new ReceiveWindow(out);
    this.#guard = new Guard(
      limits,
      () => wire.now(),
      (code, why) => this.fail(code, why),
    );
    this.sender = new Sender(out, this.peer, held, (stream) => this.requests.answered(stream));
    this.requests = new Requests({
      out,
      limits,
      held,
      peer: this.peer,
      sender: this.sender,
      streams: this.#streams,
      window: this.#window,
      guard: this.#guard,
      closed: () => this.#endIfDone(),
    });
  }

  /** To be called once, before anything is received. `tableBytes`: what the peer is told its table of headers may have. */
  begin(open: Open, tableBytes: number = TABLE_BYTES): void {
    this.requests.begin(open);
    this.#out.settings([
      ...(tableBytes === TABLE_BYTES ? [] : [[SETTING.HEADER_TABLE_SIZE, tableBytes] as const]),
      [SETTING.MAX_CONCURRENT_STREAMS, this.#limits.streams],
      [SETTING.MAX_HEADER_LIST_SIZE, this.#limits.headerListBytes],
    ]);
    this.#window.begin();
  }

  /** Streams that are open or in use. */
  get slots(): number {
    return this.#streams.slots;
  }

  get isOver(): boolean {
    return this.#state === "over";
  }

  /** How many milliseconds nothing is to be read: the peer does too much for nothing. */
  get waitMs(): number {
    return this.#guard.waitMs;
  }

  /** Takes what came. Frames that answer it are in `out`; the caller flushes it. */
  receive(chunk: Buffer): void {
    if (this.#state === "over") {
      this.#discarded += chunk.length;
      if (this.#discarded > MAX_DISCARDED_BYTES) this.#wire.destroy();
      return;
    }
    this.#wire.lifetime.heard();
    try {
      this.#reader.read(chunk);
    } catch (thrown) {
      if (thrown instanceof ConnectionError) this.fail(thrown.code, thrown.message);
      else if (thrown instanceof HpackError) this.fail(CODE.COMPRESSION_ERROR, thrown.message);
      else {
        this.#wire.failed(thrown);
        this.fail(CODE.INTERNAL_ERROR, "");
      }
    }
  }

  /** To be called several times a second: does what is due, and leaves it in `out`. */
  look(): void {
    const { lifetime } = this.#wire;
    switch (lifetime.look(this.#wire.awake())) {
      case "nothing":
        return;
      case "ping":
        return this.#out.whole(FRAME.PING, 0, 0, KEEPALIVE_PING);
      case "leave":
        return this.leave();
      case "tell last":
        return this.#tellLast();
      case "end calls":
        for (const stream of this.#streams.all()) stream.user?.leave();
        return;
      case "give up":
        return this.fail(CODE.NO_ERROR, lifetime.why());
      case "end":
        return this.#finish();
      case "destroy":
        return this.#wire.destroy();
    }
  }

  /** Tells the peer how many streams it may have at once. What it may have at most stays as it was. */
  limitStreams(streams: number): void {
    if (this.#state !== "over") this.#out.settings([[SETTING.MAX_CONCURRENT_STREAMS, streams]]);
  }

  /** Ends the connection for a fault of its peer, or of ours. */
  fail(code: Code, why: string): void {
    if (this.#state === "over") return;
    this.#out.goAway(Math.min(this.#streams.last, this.requests.lastTaken), code, why);
    this.#finish();
  }

  /** The socket is gone. */
  closed(): void {
    if (this.#state !== "over") this.#finish();
  }

  /**
   * Asks the peer for no further streams, and ends when those have that were begun. What is on its way is still taken: the
   * last stream is named when the peer has heard of it (RFC 9113, 6.8).
   */
  leave(): void {
    if (this.#state === "open") {
      this.#state = "going";
      this.#wire.lifetime.goes(this.#wire.awake());
    }
    if (this.#wire.lifetime.isSettled || this.#streams.last > 0) this.#announce();
  }

  #announce(): void {
    if (this.#state !== "going") return;
    this.#state = "announced";
    this.#wire.lifetime.leaves(this.#wire.awake());
    this.#out.goAway(MAX_WINDOW, CODE.NO_ERROR, "");
    this.#out.whole(FRAME.PING, 0, 0, LEAVE_PING);
  }

  // —— What comes ——

  #frame(type: number, flags: number, id: number, bytes: Buffer, from: number, to: number): void {
    if (!this.#hasSettings && (type !== FRAME.SETTINGS || (flags & FLAG.ACK) !== 0)) {
      throw new ConnectionError(CODE.PROTOCOL_ERROR, "the first frame must be SETTINGS");
    }
    this.requests.assertInOrder(type, id);
    switch (type) {
      case FRAME.DATA:
        return this.requests.data(flags, id, bytes, from, to);
      case FRAME.HEADERS:
        return this.requests.headers(flags, id, bytes, from, to);
      case FRAME.CONTINUATION:
        return this.requests.continuation(flags, bytes, from, to);
      case FRAME.WINDOW_UPDATE:
        return this.requests.windowUpdate(id, bytes, from, to);
      case FRAME.RST_STREAM:
        return this.requests.rstStream(id, to - from);
      case FRAME.SETTINGS:
        return this.#settings(flags, id, bytes, from, to);
      case FRAME.PING:
        return this.#ping(flags, id, bytes, from, to);
      case FRAME.PRIORITY:
        return this.requests.priority(id, bytes, from, to);
      case FRAME.GOAWAY:
        assertFrame(id === 0, CODE.PROTOCOL_ERROR, "GOAWAY on a stream");
        assertFrame(to - from >= 8, CODE.FRAME_SIZE_ERROR, "a GOAWAY too short");
        return void this.#guard.useless("GOAWAY");
      case FRAME.PUSH_PROMISE:
        throw new ConnectionError(CODE.PROTOCOL_ERROR, "PUSH_PROMISE of a client");
      default:
        // RFC 9113, 4.1: unknown types are ignored.
        return void this.#guard.useless("unknown frames");
    }
  }

  #settings(flags: number, id: number, bytes: Buffer, from: number, to: number): void {
    assertFrame(id === 0, CODE.PROTOCOL_ERROR, "SETTINGS on a stream");
    if ((flags & FLAG.ACK) !== 0) {
      assertFrame(to === from, CODE.FRAME_SIZE_ERROR, "an acknowledgement with settings");
      this.#wire.lifetime.settled();
      this.#announce();
      return void this.#guard.useless("SETTINGS");
    }
    this.#hasSettings = true;
    const change = this.peer.take(bytes, from, to);
    // RFC 9113, 6.9.2: windows of open streams move along, below 0 if need be.
    if (change !== 0) {
      for (const stream of this.#streams.all()) {
        stream.sendWindow += change;
        assertFrame(stream.sendWindow <= MAX_WINDOW, CODE.FLOW_CONTROL_ERROR, "a window too large");
      }
    }
    this.#out.settingsAck();
    if (change > 0) this.sender.pump();
    this.#guard.useless("SETTINGS");
  }

  #ping(flags: number, id: number, bytes: Buffer, from: number, to: number): void {
    assertFrame(id === 0, CODE.PROTOCOL_ERROR, "PING on a stream");
    assertFrame(to - from === 8, CODE.FRAME_SIZE_ERROR, "a PING of another size");
    // Clients of gRPC know this text, and ping less.
    if (this.#guard.useless("too_many_pings")) return;
    if ((flags & FLAG.ACK) === 0) {
      this.#out.whole(FRAME.PING, FLAG.ACK, 0, bytes.subarray(from, to));
    } else if (LEAVE_PING.compare(bytes, from, to) === 0) this.#tellLast();
  }

  #tellLast(): void {
    if (this.#state !== "announced") return;
    this.#state = "leaving";
    this.#wire.lifetime.toldLast();
    this.requests.lastTaken = this.#streams.last;
    this.#out.goAway(this.requests.lastTaken, CODE.NO_ERROR, "");
    this.#endIfDone();
  }

  #endIfDone(): void {
    if (this.#state === "leaving" && this.#streams.size === 0) this.#finish();
  }

  #finish(): void {
    this.#state = "over";
    this.#reader.stop();
    this.requests.end();
    this.#wire.lifetime.ends(this.#wire.awake());
    this.#wire.end();
  }
}
