import type { Socket } from "node:net";
import type { ShownNames } from "../tls/names.ts";
import { Answers } from "./calls/answers.ts";
import type { CallsOfConnection, CallsPorts, LateCall, Row } from "./calls/call.ts";
import { type Peer, peerOf } from "./calls/call-context.ts";
import { Calls } from "./calls/calls.ts";
import { CODE } from "./http2/frames.ts";
import { Connection } from "./http2/connection.ts";
import { type AwakeTime, Lifetime } from "./http2/lifetime.ts";
import { CONNECTION_LIMITS, Held, type HeldOfAll } from "./http2/limits.ts";
import { Out } from "./http2/out.ts";

/**
 * After so many bytes of one connection others are read first. Node reads on for 2 MiB otherwise, and has 64 KiB in its hands:
 * 20 ms of calls.
 */
const SLICE_BYTES = 16 * 1_024;
/** So many connections have whole slices in a turn. With more, each has less of it, so that a turn takes no longer. */
const WHOLE_SLICES = 8;
const LEAST_SLICE_BYTES = 1_024;
const TURN_BYTES = 64 * 1_024;
/** Longest time for which a peer is not read that does too much for nothing, before it is looked at again. */
const MAX_WAIT_MS = 1_000;
/** After so many looks at which a peer had taken nothing of what waits, it is ended where memory is short. */
const MAX_STALLS = 4;

/** What the connections of a door share. */
export interface Shared {
  /** What is kept for the peers of all connections. */
  readonly held: HeldOfAll;
  /** Connections of which something was read, and which let others be first. */
  readonly turn: { waiting: number };
}

export interface FastConnectionOptions {
  readonly maxAgeMs: number;
  readonly awake: AwakeTime;
  readonly shared: Shared;
  /** What its peer is told that its table of headers may have. */
  readonly tableBytes?: number | undefined;
}

/** One socket: what comes goes into its connection, and what the connection collected goes out. */
export class FastConnection {
  readonly #socket: Socket;
  readonly #ports: CallsPorts;
  readonly #out: Out;
  readonly #held: Held;
  readonly #connection: Connection;
  readonly #late = new Set<LateCall>();
  readonly #calls: Calls;
  readonly #peer: Peer;
  readonly #turn: Shared["turn"];
  #isFlushing = false;
  /** Read since others were let first. */
  #read = 0;
  /** Why nothing is read: others are first, or the peer does not take its answers. */
  #isAfterOthers = false;
  #isFull = false;
  /** What was read and waits for its turn. */
  #rest: Buffer | undefined;
  /** What of it is counted. */
  #lent = 0;
  /** Looks in a row at which the peer had taken nothing. */
  #stalls = 0;

  constructor(
    socket: Socket,
    shown: ShownNames,
    rows: ReadonlyMap<string, Row>,
    ports: CallsPorts,
    { maxAgeMs, awake, shared, tableBytes }: FastConnectionOptions,
  ) {
    const { remoteAddress = "?", remotePort = 0 } = socket;
    this.#socket = socket;
    this.#ports = ports;
    this.#turn = shared.turn;
    this.#held = new Held(shared.held, CONNECTION_LIMITS);
    this.#out = new Out((bytes, done) => this.#write(bytes, done), this.#held);
    this.#peer = peerOf(`${remoteAddress}:${remotePort}`, shown);
    this.#connection = new Connection(
      {
        out: this.#out,
        held: this.#held,
        lifetime: new Lifetime(awake.now, maxAgeMs),
        now: () => performance.now(),
        awake: () => awake.now,
        end: () => this.#end(),
        destroy: () => socket.destroy(),
        failed: (cause) => ports.emit({ type: "internal-error", where: "a connection", cause }),
      },
      CONNECTION_LIMITS,
    );
    this.#calls = new Calls(rows, this.#itsCalls());
    this.#connection.begin(this.#calls.open, tableBytes);
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.once("close", () => this.#closed());
    this.#out.flush();
  }

  /** Who it is to admission. */
  get caller(): string {
    return this.#peer.caller;
  }

  /** Calls that are open, or whose handlers still work. */
  get inFlight(): number {
    return this.#connection.slots;
  }

  /** Bytes of what its peer began and did not end, and of its table of headers. */
  get begun(): number {
    return this.#held.begun;
  }

  get isClosed(): boolean {
    return this.#connection.isOver;
  }

  limitStreams(streams: number): void {
    this.#connection.limitStreams(streams);
    this.#out.flush();
  }

  /** Takes no further calls, and closes when those that run have ended. */
  leave(): void {
    this.#connection.leave();
    this.#out.flush();
  }

  /** To be called several times a second. */
  look(): void {
    this.#connection.look();
    this.#out.flush();
    this.#stalls = this.#out.queued > 0 ? this.#stalls + 1 : 0;
    if (this.#held.isShort) this.#endIfIdle();
  }

  /**
   * Ends the connection where memory is short, and it keeps some that will not be free soon: its peer takes no answers, or does
   * so much for nothing that it is not read.
   */
  #endIfIdle(): void {
    const isStalled = this.#stalls >= MAX_STALLS;
    if (
      this.isClosed ||
      (!isStalled && (this.#rest === undefined || this.#connection.waitMs === 0))
    )
      return;
    this.#giveUp(isStalled ? "it takes no answers" : "it does too much for nothing");
    if (isStalled) this.#socket.destroy();
  }

  /** Bytes of answers that its peer does not take, and of requests that are not whole. */
  get kept(): number {
    return this.#held.bytes;
  }

  /** Ends the connection, since what all peers began or keep is too much, and nobody's is more. */
  makeRoom(): void {
    if (this.isClosed) return;
    this.#endNow(() => this.#giveUp("it keeps the most of it"));
  }

  /** Ends the connection, since somebody else has its place now. */
  giveWay(): void {
    this.#endNow(() =>
      this.#connection.fail(CODE.ENHANCE_YOUR_CALM, "too many connections of this address"),
    );
  }

  #giveUp(why: string): void {
    const { address: peer } = this.#peer;
    this.#ports.emit({ type: "connection-refused", peer, why: `memory is short, and ${why}` });
    this.#connection.fail(CODE.ENHANCE_YOUR_CALM, "memory is short");
    this.#out.flush();
  }

  /** Its peer may read why, but nobody waits for one that did not take what was written before. */
  #endNow(end: () => void): void {
    const isBehind = this.#out.queued > 0;
    end();
    if (isBehind) this.#socket.destroy();
    else this.#socket.destroySoon();
  }

  #closed(): void {
    this.#keepRest(undefined);
    this.#connection.closed();
  }

  #itsCalls(): CallsOfConnection {
    const { requests } = this.#connection;
    return {
      ports: this.#ports,
      peer: this.#peer,
      answers: new Answers(this.#connection),
      flush: () => this.#flushSoon(),
      leave: () => this.#connection.leave(),
      release: (stream) => requests.release(stream),
      reset: (stream) => requests.reset(stream, CODE.CANCEL),
      pause: (stream) => {
        stream.isPaused = true;
      },
      resume: (stream) => requests.resume(stream),
      held: this.#held,
      isWasteful: () => this.#connection.waitMs > 0,
      late: this.#late,
    };
  }

  #receive(chunk: Buffer): void {
    const slice = Math.max(
      LEAST_SLICE_BYTES,
      SLICE_BYTES / Math.max(1, this.#turn.waiting / WHOLE_SLICES),
    );
    const isLarge = chunk.length > slice;
    this.#connection.receive(isLarge ? chunk.subarray(0, slice) : chunk);
    if (this.#late.size > 0) for (const call of this.#late) call.goOn();
    this.#calls.read();
    this.#out.flush();
    if (this.#connection.isOver) return;
    if (isLarge) this.#keepRest(chunk.subarray(slice));
    this.#isFull = this.#out.queued > this.#held.most(CONNECTION_LIMITS.queuedBytes);
    this.#read += Math.min(chunk.length, slice);
    const { waitMs } = this.#connection;
    if (isLarge || waitMs > 0 || this.#read >= TURN_BYTES) this.#letOthersFirst(waitMs);
    if (this.#isFull) this.#socket.pause();
  }

  #letOthersFirst(waitMs: number): void {
    if (this.#isAfterOthers) return;
    this.#read = 0;
    this.#isAfterOthers = true;
    this.#socket.pause();
    const goOn = (): void => {
      this.#isAfterOthers = false;
      this.#readOn();
    };
    if (waitMs > 0) {
      setTimeout(goOn, Math.min(waitMs, MAX_WAIT_MS)).unref();
      return;
    }
    this.#turn.waiting++;
    setImmediate(() => {
      this.#turn.waiting--;
      goOn();
    });
  }

  /** All of a chunk is in memory as long as a part of it waits, and as much again: the socket reads on once more. */
  #keepRest(rest: Buffer | undefined): void {
    const lent = rest === undefined ? 0 : 2 * rest.buffer.byteLength;
    this.#held.lend(lent - this.#lent);
    this.#lent = lent;
    this.#rest = rest;
  }

  #readOn(): void {
    if (this.#isFull || this.#isAfterOthers) return;
    const rest = this.#rest;
    if (rest !== undefined) {
      this.#rest = undefined;
      this.#receive(rest);
      if (this.#rest === undefined) this.#keepRest(undefined);
      if (this.#isFull || this.#isAfterOthers) return;
    }
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  #write(bytes: Buffer, done: () => void): void {
    const taken = (): void => {
      done();
      this.#stalls = 0;
      if (!this.#isFull || this.#out.queued > this.#held.most(CONNECTION_LIMITS.queuedBytes) / 2) {
        return;
      }
      this.#isFull = false;
      this.#readOn();
    };
    if (this.#socket.writable) this.#socket.write(bytes, taken);
    else taken();
  }

  /** What is answered in one turn goes out together. */
  #flushSoon(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => {
      this.#isFlushing = false;
      this.#out.flush();
    });
  }

  /** The peer reads why before the socket is closed, so it is read from until then. */
  #end(): void {
    this.#out.handOver();
    this.#socket.end();
    this.#keepRest(undefined);
    this.#isFull = false;
    this.#isAfterOthers = false;
    this.#readOn();
  }
}
