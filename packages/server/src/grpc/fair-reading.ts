import type { Http2Session, ServerHttp2Stream } from "node:http2";
import { Duplex, Readable } from "node:stream";
import type { Timers } from "@idmint/core";
import { endsMessage, isOneMessage, type MessageBounds } from "./message-bounds.ts";
import {
  createWasteState,
  newWaster,
  nextToGoOn,
  wasted,
  type Waster,
  type WasteOptions,
  type WasteState,
} from "./waste-state.ts";

// Node reads up to 2 MiB of a connection before it looks at the next one. That is half a second of calls, or a second of
// frames of one byte: callers on other connections wait meanwhile, and everything that was begun lives until the turn is
// over. So connections are read in slices, and one whose calls are for nothing is read less. Nobody is refused anything.

/** After so many calls of one connection, others are read first. As many as it may have in flight, so few ever notice. */
const SLICE = 1_024;
/** A chunk of a message costs a small part of what a call does. */
const CHUNK = 1 / 16;
/** A chunk below this many bytes in which no message ends is a crumb. */
const CRUMB_BYTES = 64;
/**
 * Calls that may be cancelled for each millisecond in which the server has nothing to do, or sixteen times as many crumbs.
 * All calls that one connection has in flight may be cancelled at once.
 */
const WASTE: WasteOptions = {
  all: { perMs: 2, burst: 1_024 },
  own: { perMs: 0.1, burst: 128 },
};
/** How often held connections are looked at. */
const LOOK_MS = 5;
/** Calls of one connection that are cancelled in the very turn in which they came, before further ones wait for the next. */
const UNBORN = 64;
/** Answers of this many bytes are counted: fewer are not worth it. */
const LARGE_BYTES = 4 * 1_024;
/** Bytes of large answers to one connection in a turn, before its further calls wait for the next. */
const TURN_BYTES = 256 * 1_024;
/** Bytes of large answers that one connection has not taken yet, and all of them, before its further calls wait. */
const UNTAKEN_BYTES = 1_024 * 1_024;
const UNTAKEN_BYTES_OF_ALL = 48 * 1_024 * 1_024;
/**
 * A caller whose streams may carry fewer bytes than this at first takes answers one by one, or none at all. Each of its
 * calls counts as a large answer until it is over.
 */
const TIGHT_WINDOW = 1_024;
const TIGHT_CALL_BYTES = 16 * 1_024;
/** Calls of one connection that have waited and begin in one turn. */
const BEGIN = 4;

/** What node:net has below a socket. HTTP/2 reads from it itself, so that `pause()` of the socket does nothing. */
interface Handle {
  readStop(): number;
  readStart(): number;
  readonly writeQueueSize: number;
}

/** A call that waits for its turn. A connection has as many at most as it may have streams. */
interface Waiting {
  readonly stream: ServerHttp2Stream;
  readonly begin: () => void;
}

/** One connection, as this file sees it. */
interface Reader extends Waster {
  readonly fair: FairReading;
  readonly handle: Handle;
  /** Work since others were let first; 1 for a call. */
  work: number;
  /** In the present turn. */
  turn: number;
  unborn: number;
  bytes: number;
  /** Bytes of large answers that it has not taken yet. */
  untaken: number;
  /** Whether its streams may carry only few bytes. */
  isTight: boolean;
  readonly waiting: Waiting[];
  isHeld: boolean;
  isGone: boolean;
}

const READER = Symbol("reader");
const TURN = Symbol("turn");
const BOUNDS = Symbol("bounds");

type Push = (this: Metered, chunk: Buffer | null, encoding?: BufferEncoding) => boolean;
type Write = (this: Metered, chunk: Buffer, done?: (error?: Error | null) => void) => boolean;

/** A stream whose work is counted. Fields and shared functions, since each call has one. */
interface Metered extends Omit<ServerHttp2Stream, "push" | "write"> {
  [READER]: Reader;
  /** In which it was opened. */
  [TURN]: number;
  [BOUNDS]?: MessageBounds;
  push: Push;
  write: Write;
}

export interface FairReadingPorts {
  /** Time in which the event loop had nothing to do, since its start. */
  readonly idleMs: () => number;
  readonly timers: Timers;
  readonly afterTurn: (run: () => void) => void;
}

/** Divides the work of a server among its connections: the shell around `waste-state.ts`. */
export class FairReading {
  readonly #ports: FairReadingPorts;
  readonly #state: WasteState<Reader>;
  /** Those with calls that wait. */
  readonly #late = new Set<Reader>();
  #turn = 0;
  #isTurnOpen = false;
  #isLooking = false;
  #untaken = 0;

  constructor(ports: FairReadingPorts) {
    this.#ports = ports;
    this.#state = createWasteState(WASTE, ports.idleMs());
  }

  /**
   * To be called from the `session` event. Answers false when the session's socket is not as this code knows it; its
   * streams begin at once then.
   */
  watch(session: Http2Session): boolean {
    const handle = handleOf(session);
    if (handle === undefined) return false;
    const reader: Reader = {
      ...newWaster(this.#state, this.#ports.idleMs()),
      fair: this,
      handle,
      work: 0,
      turn: 0,
      unborn: 0,
      bytes: 0,
      untaken: 0,
      isTight: false,
      waiting: [],
      isHeld: false,
      isGone: false,
    };
    Reflect.set(session, READER, reader);
    session.on("remoteSettings", ({ initialWindowSize = Infinity }) => {
      reader.isTight = initialWindowSize < TIGHT_WINDOW;
    });
    session.once("close", () => {
      reader.isGone = true;
      this.#state.held.delete(reader);
      this.#late.delete(reader);
    });
    return true;
  }

  /** A stream was opened. Begins its call now, or when its connection has its turn. */
  opened(stream: ServerHttp2Stream, begin: () => void): void {
    const reader = (stream.session as { [READER]?: Reader } | undefined)?.[READER];
    if (reader?.fair !== this) {
      begin();
      return;
    }
    this.#openTurn();
    const metered = stream as unknown as Metered;
    metered[READER] = reader;
    metered[TURN] = this.#turn;
    metered.push = push;
    metered.write = write;
    stream.on("aborted", onAborted);
    this.worked(reader, 1);
    if (reader.waiting.length === 0 && this.#hasTurn(this.#counted(reader))) {
      this.#begin(reader, stream, begin);
    } else {
      // Until grpc-js has the stream, nobody else hears of its errors.
      stream.on("error", () => undefined);
      reader.waiting.push({ stream, begin });
      this.#late.add(reader);
      // It goes on calling while it takes no answers.
      if (reader.isTight) this.wasted(reader, 1);
    }
  }

  /** Counts work, and lets others be read first when it was much. */
  worked(reader: Reader, units: number): void {
    // HTTP/2 reads on by itself when something was written, as it often is with TLS.
    if (reader.isHeld) reader.handle.readStop();
    reader.work += units;
    if (reader.work < SLICE) return;
    reader.work = 0;
    this.#letOthersFirst(reader);
  }

  /** Work that was for nothing. */
  wasted(reader: Reader, units: number): void {
    if (reader.isGone || !wasted(this.#state, reader, units, this.#ports.idleMs())) return;
    reader.isHeld = true;
    reader.handle.readStop();
    this.#look();
  }

  /** A call was cancelled before its answer was sent. */
  aborted(reader: Reader, turn: number): void {
    if (turn === this.#turn && ++reader.unborn === UNBORN) this.#letOthersFirst(reader);
    this.wasted(reader, 1);
  }

  /** Bytes of an answer are on their way, or, below 0, taken. */
  answered(reader: Reader, bytes: number): void {
    reader.untaken += bytes;
    this.#untaken += bytes;
    if (bytes > 0) reader.bytes += bytes;
    else if (this.#late.size > 0) this.#openTurn();
  }

  /** Begins what waits, as much as has its turn, when the present turn is over. */
  #openTurn(): void {
    if (this.#isTurnOpen) return;
    this.#isTurnOpen = true;
    this.#ports.afterTurn(() => {
      this.#isTurnOpen = false;
      this.#turn++;
      for (const late of this.#late) this.#beginSome(late);
    });
  }

  /** What a connection did in earlier turns is over. */
  #counted(reader: Reader): Reader {
    if (reader.turn === this.#turn) return reader;
    reader.turn = this.#turn;
    reader.unborn = 0;
    reader.bytes = 0;
    return reader;
  }

  #hasTurn({ unborn, bytes, untaken }: Reader): boolean {
    const most = this.#untaken < UNTAKEN_BYTES_OF_ALL ? UNTAKEN_BYTES : LARGE_BYTES;
    return unborn < UNBORN && bytes < TURN_BYTES && untaken < most;
  }

  #begin(reader: Reader, stream: ServerHttp2Stream, begin: () => void): void {
    if (reader.isTight) {
      this.answered(reader, TIGHT_CALL_BYTES);
      stream.once("close", () => this.answered(reader, -TIGHT_CALL_BYTES));
    }
    begin();
  }

  /** Calls that were cancelled while they waited are never begun. */
  #beginSome(reader: Reader): void {
    const { waiting } = this.#counted(reader);
    let begun = 0;
    let at = 0;
    while (at < waiting.length && begun < BEGIN && this.#hasTurn(reader)) {
      const next = waiting[at++];
      if (next === undefined || next.stream.destroyed) continue;
      this.#begin(reader, next.stream, next.begin);
      begun++;
    }
    waiting.splice(0, at);
    if (waiting.length === 0) this.#late.delete(reader);
    // Otherwise the next turn comes when it takes its answers.
    else if (begun > 0) this.#openTurn();
  }

  /** Reads on in the next turn. */
  #letOthersFirst(reader: Reader): void {
    if (reader.isHeld) return;
    reader.handle.readStop();
    this.#ports.afterTurn(() => {
      if (!reader.isHeld) this.#goOn(reader);
    });
  }

  /** Lets those go on that may, and looks again while some are held. */
  #look(): void {
    if (this.#isLooking || this.#state.held.size === 0) return;
    this.#isLooking = true;
    this.#ports.timers.after(LOOK_MS, () => {
      this.#isLooking = false;
      const reader = nextToGoOn(this.#state, this.#ports.idleMs());
      if (reader !== undefined) this.#goOn(reader);
      // HTTP/2 may have read on by itself, and JavaScript hears of no stream past the limit.
      for (const held of this.#state.held) held.handle.readStop();
      this.#look();
    });
  }

  #goOn(reader: Reader): void {
    if (reader.isGone) return;
    // A peer that does not take its answers: HTTP/2 has stopped reading by itself, or what it reads piles up.
    if (reader.handle.writeQueueSize > 0) {
      reader.isHeld = true;
      this.#state.held.add(reader);
      this.#look();
      return;
    }
    reader.isHeld = false;
    reader.handle.readStart();
  }
}

function onAborted(this: ServerHttp2Stream): void {
  const stream = this as unknown as Metered;
  stream[READER].fair.aborted(stream[READER], stream[TURN]);
}

const push: Push = function (chunk, encoding) {
  const reader = this[READER];
  if (chunk !== null && (this[BOUNDS] !== undefined || !isOneMessage(chunk))) {
    const bounds = (this[BOUNDS] ??= { prefix: 0, length: 0, body: 0 });
    const isCrumb = !endsMessage(bounds, chunk) && chunk.length < CRUMB_BYTES;
    if (isCrumb) reader.fair.wasted(reader, CHUNK);
  }
  reader.fair.worked(reader, CHUNK);
  return Readable.prototype.push.call(this, chunk, encoding);
};

const plainWrite = Reflect.get(Duplex.prototype, "write") as Write;

const write: Write = function (chunk, done) {
  const { length } = chunk;
  if (length < LARGE_BYTES) return plainWrite.call(this, chunk, done);
  const reader = this[READER];
  reader.fair.answered(reader, length);
  return plainWrite.call(this, chunk, (error) => {
    reader.fair.answered(reader, -length);
    done?.(error);
  });
};

function handleOf(session: Http2Session): Handle | undefined {
  const handle: unknown = Reflect.get(session.socket, "_handle");
  if (typeof handle !== "object" || handle === null) return undefined;
  const isKnown =
    typeof Reflect.get(handle, "readStop") === "function" &&
    typeof Reflect.get(handle, "readStart") === "function" &&
    typeof Reflect.get(handle, "writeQueueSize") === "number";
  return isKnown ? (handle as Handle) : undefined;
}
