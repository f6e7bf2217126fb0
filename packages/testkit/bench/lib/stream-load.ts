// A load generator for StreamIds: one stream, many small requests in flight. h2load cannot write many messages on one
// stream, and a gRPC client would cost as much as the server.
// Usage: stream-load.ts '{"address":…,"tag":…,"inFlight":…,"batch":…,"seconds":…}'. Writes one line of JSON.
import { connect, type Socket } from "node:net";
import { StreamIdsRequest } from "@idmint/proto";
import { framed } from "./h2load.ts";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  firstHeaders,
  FRAME_HEAD,
  frame,
  FrameReader,
  PREFACE,
  TYPE,
} from "./http2-frames.ts";
import { percentile } from "./statistics.ts";
import { StreamAnswers } from "./stream-answers.ts";

/** What to ask: one id a request, of one tag. */
export interface StreamLoad {
  readonly address: string;
  readonly tag: string;
  /** Requests that wait for their answer at once; at most 1,024. */
  readonly inFlight: number;
  /** Requests that are sent at once: as many as this, or more, when as many may be sent. */
  readonly batch: number;
  readonly seconds: number;
}

export interface StreamResult {
  readonly answered: number;
  /** Requests answered a second: as many ids. */
  readonly callsPerSecond: number;
  /** Of one request, in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Processor time of the generator, microseconds a request. */
  readonly generatorCpuUs: number;
}

const STREAM = 1;
const PATH = "/idmint.v1.IdService/StreamIds";
/** The prefix of a message, and a call number of up to five bytes with its field. */
const MAX_REQUEST_BYTES = 11;
const DEFAULT_WINDOW = 65_535;
/** What the server may send before it is told that it was read. */
const OUR_WINDOW = 2 ** 30;
/** It is told every so many bytes. */
const REFILL = 2 ** 20;
const INITIAL_WINDOW_SIZE = 4;

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Requests of one id each on the tag of the request before, numbered from `first`, in one frame. */
function requests(first: number, count: number): Buffer {
  const bytes = Buffer.allocUnsafe(FRAME_HEAD + count * MAX_REQUEST_BYTES);
  let at = FRAME_HEAD;
  for (let call = first; call < first + count; call++) {
    const begin = at;
    bytes[begin] = 0;
    at += 5;
    bytes[at++] = 0x08;
    let rest = call;
    while (rest >= 0x80) {
      bytes[at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    bytes[at++] = rest;
    bytes.writeUInt32BE(at - begin - 5, begin + 1);
  }
  bytes.writeUIntBE(at - FRAME_HEAD, 0, 3);
  bytes[3] = TYPE.data;
  bytes[4] = 0;
  bytes.writeUInt32BE(STREAM, 5);
  return bytes.subarray(0, at);
}

/** One StreamIds call on a connection of its own, until its time is over and everything is answered. */
class StreamCall {
  readonly done = Promise.withResolvers<void>();
  readonly answers = new StreamAnswers();
  readonly #load: StreamLoad;
  readonly #socket: Socket;
  readonly #frames: FrameReader;
  #nextCall = 1;
  #end = Infinity;
  /** What the server still lets us send: on the connection, and on the stream. */
  #window = DEFAULT_WINDOW;
  #streamWindow = DEFAULT_WINDOW;
  #initialWindow = DEFAULT_WINDOW;
  #unread = 0;
  /** When the bytes came that are being read. */
  #now = 0;
  #out: Buffer[] = [];
  #state: "open" | "asked" | "ended" = "open";

  constructor(load: StreamLoad) {
    this.#load = load;
    this.#frames = new FrameReader((type, flags, stream, payload) =>
      this.#take(type, flags, stream, payload),
    );
    const [host = "", port = ""] = load.address.split(":");
    this.#socket = connect({ host, port: Number(port), noDelay: true });
    this.#socket.once("connect", () => this.#begin());
    this.#socket.on("data", (chunk) => this.#read(chunk));
    this.#socket.once("error", (error) => this.done.reject(error));
    this.#socket.once("close", () => {
      if (this.#state === "ended") this.done.resolve();
      else this.done.reject(new Error("the server closed the connection"));
    });
  }

  #begin(): void {
    this.#end = performance.now() + this.#load.seconds * 1_000;
    const settings = Buffer.concat([Buffer.from([0, INITIAL_WINDOW_SIZE]), uint32(OUR_WINDOW)]);
    const call = this.#nextCall++;
    const { tag } = this.#load;
    const first = framed(StreamIdsRequest.encode({ call, tag, count: 0, name: "" }).finish());
    this.answers.sent(call, performance.now());
    this.#spend(first.length);
    this.#out.push(
      PREFACE,
      frame(TYPE.settings, 0, 0, settings),
      frame(TYPE.window, 0, 0, uint32(OUR_WINDOW - DEFAULT_WINDOW)),
      frame(TYPE.headers, END_HEADERS, STREAM, firstHeaders(this.#load.address, PATH)),
      frame(TYPE.data, 0, STREAM, first),
    );
    this.#ask(performance.now());
  }

  #read(chunk: Buffer): void {
    this.#now = performance.now();
    try {
      this.#frames.read(chunk);
      this.#ask(performance.now());
    } catch (thrown) {
      this.#socket.destroy(thrown instanceof Error ? thrown : new Error(String(thrown)));
    }
  }

  /** As many requests as may be in flight, and as the server lets us send; and nothing once the time is over. */
  #ask(now: number): void {
    if (now < this.#end) {
      const room = Math.floor(Math.min(this.#window, this.#streamWindow) / MAX_REQUEST_BYTES);
      const count = Math.min(room, this.#load.inFlight - this.answers.inFlight);
      if (count >= this.#load.batch) {
        for (let i = 0; i < count; i++) this.answers.sent(this.#nextCall + i, now);
        const bytes = requests(this.#nextCall, count);
        this.#nextCall += count;
        this.#spend(bytes.length - FRAME_HEAD);
        this.#out.push(bytes);
      }
    } else if (this.#state === "open" && this.answers.inFlight === 0) {
      this.#state = "asked";
      this.#out.push(frame(TYPE.data, END_STREAM, STREAM, Buffer.alloc(0)));
    }
    if (this.#out.length > 0) this.#socket.write(Buffer.concat(this.#out));
    this.#out = [];
    if (this.#state === "ended") this.#socket.end();
  }

  #spend(bytes: number): void {
    this.#window -= bytes;
    this.#streamWindow -= bytes;
  }

  #take(type: number, flags: number, stream: number, payload: Buffer): void {
    if (type === TYPE.data) {
      this.answers.read(payload, this.#now);
      this.#refill(payload.length);
    } else if (type === TYPE.window) {
      if (stream === 0) this.#window += payload.readUInt32BE(0);
      else this.#streamWindow += payload.readUInt32BE(0);
    } else if (type === TYPE.settings && (flags & ACK) === 0) {
      this.#settings(payload);
    } else if (type === TYPE.ping && (flags & ACK) === 0) {
      this.#out.push(frame(TYPE.ping, ACK, 0, payload));
    } else if (type === TYPE.reset || type === TYPE.goAway) {
      throw new Error("the server gave the stream up");
    }
    if ((type === TYPE.data || type === TYPE.headers) && (flags & END_STREAM) !== 0) {
      // An error of the call as a whole ends it before we do.
      if (this.#state === "open") throw new Error("the server ended the stream");
      this.#state = "ended";
    }
  }

  /** The server's window for a stream holds for the one that is open, too. */
  #settings(payload: Buffer): void {
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      if (payload.readUInt16BE(at) !== INITIAL_WINDOW_SIZE) continue;
      const size = payload.readUInt32BE(at + 2);
      this.#streamWindow += size - this.#initialWindow;
      this.#initialWindow = size;
    }
    this.#out.push(frame(TYPE.settings, ACK, 0, Buffer.alloc(0)));
  }

  #refill(bytes: number): void {
    this.#unread += bytes;
    if (this.#unread < REFILL) return;
    const size = uint32(this.#unread);
    this.#unread = 0;
    this.#out.push(frame(TYPE.window, 0, 0, size), frame(TYPE.window, 0, STREAM, size));
  }
}

async function run(load: StreamLoad): Promise<StreamResult> {
  const start = performance.now();
  const before = process.cpuUsage();
  const call = new StreamCall(load);
  await call.done.promise;
  const seconds = (performance.now() - start) / 1_000;
  const { user, system } = process.cpuUsage(before);
  const sorted = Float64Array.from(call.answers.latencies).toSorted();
  return {
    answered: sorted.length,
    callsPerSecond: sorted.length / seconds,
    p50: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
    generatorCpuUs: (user + system) / sorted.length,
  };
}

if (import.meta.main) {
  console.log(JSON.stringify(await run(JSON.parse(process.argv[2] ?? "{}") as StreamLoad)));
}
