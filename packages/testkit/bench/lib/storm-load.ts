// A load generator for servers that refuse: it offers calls at a rate of its own, whether they are answered or not, or
// as many at once as may be, from an address of its own, and tells answers from refusals. h2load counts both alike.
// Usage: storm-load.ts '{"address":…,"from":…,"tag":…,…}'. Writes one line of JSON.
import { writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { GenerateIdRequest, GenerateIdResponse } from "@idmint/proto";
import { framed } from "./h2load.ts";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  firstHeaders,
  frame,
  FrameReader,
  LATER_HEADERS,
  PREFACE,
  TYPE,
} from "./http2-frames.ts";
import { percentile } from "./statistics.ts";

/** What to ask: an id a call, of one tag. */
export interface StormLoad {
  /** host:port */
  readonly address: string;
  /** Address of this machine from which to call: another caller to the server. */
  readonly from: string;
  readonly tag: string;
  readonly connections: number;
  /** Calls that each connection may have in flight. */
  readonly streams: number;
  /** Calls offered a second by all connections together. 0: as many as may be in flight, all the time. */
  readonly callsPerSecond: number;
  readonly seconds: number;
  /** Latencies count from then on. */
  readonly settleSeconds: number;
  /** Where to write the ids of all answers, 8 bytes each. */
  readonly idsFile?: string;
}

export interface StormResult {
  /** Calls that were to be sent. */
  readonly offered: number;
  /** Of those, not sent, since too many were in flight already. */
  readonly unsent: number;
  readonly answered: number;
  /** Answered with an error. */
  readonly refused: number;
  /** Streams that the server reset instead of answering. */
  readonly reset: number;
  /** Answers a second after the settling. */
  readonly answeredPerSecond: number;
  readonly refusedPerSecond: number;
  /** Of answers after the settling, in milliseconds since the call was sent. */
  readonly p50: number;
  readonly p99: number;
  /** When the last call was sent that was refused, in seconds since the start; 0: none was. */
  readonly lastRefusalAt: number;
  /** Processor time of the generator, share of a core. */
  readonly generatorCores: number;
}

/** SETTINGS_MAX_CONCURRENT_STREAMS of RFC 9113. */
const MAX_STREAMS = 3;
const SETTING_BYTES = 6;

function streamsAllowed(settings: Buffer): number | undefined {
  for (let at = 0; at + SETTING_BYTES <= settings.length; at += SETTING_BYTES) {
    if (settings.readUInt16BE(at) === MAX_STREAMS) return settings.readUInt32BE(at + 2);
  }
  return undefined;
}

const PATH = "/idmint.v1.IdService/GenerateId";
const TICK_MS = 1;
/** A generator that could not run for longer than this does not make up for it. */
const MAX_LATE_MS = 50;
/** Whoever gets no answer for so long after the end is counted as unanswered. */
const DRAIN_MS = 15_000;

/** Counts what comes of calls. */
class Tally {
  readonly #start = performance.now();
  readonly #settledAt: number;
  readonly #latencies: number[] = [];
  #settledRefusals = 0;
  #lastRefusalAt = 0;
  offered = 0;
  unsent = 0;
  answered = 0;
  refused = 0;
  reset = 0;
  readonly ids: bigint[] = [];
  #endedAt = 0;

  constructor(load: StormLoad) {
    this.#settledAt = this.#start + load.settleSeconds * 1_000;
  }

  ended(kind: "answered" | "refused" | "reset", startedAt: number): void {
    this[kind]++;
    const now = performance.now();
    if (kind === "refused") {
      this.#lastRefusalAt = Math.max(this.#lastRefusalAt, (startedAt - this.#start) / 1_000);
    }
    if (now < this.#settledAt || this.#endedAt > 0) return;
    if (kind === "answered") this.#latencies.push(now - startedAt);
    else if (kind === "refused") this.#settledRefusals++;
  }

  get isOver(): boolean {
    return this.#endedAt > 0;
  }

  /** The time is over: what comes later is counted, and not timed. */
  close(): void {
    this.#endedAt = performance.now();
  }

  result(): StormResult {
    const latencies = Float64Array.from(this.#latencies).toSorted();
    const seconds = (this.#endedAt - this.#settledAt) / 1_000;
    const { user, system } = process.cpuUsage();
    const { offered, unsent, answered, refused, reset } = this;
    return {
      offered,
      unsent,
      answered,
      refused,
      reset,
      answeredPerSecond: latencies.length / seconds,
      refusedPerSecond: this.#settledRefusals / seconds,
      p50: percentileOf(latencies, 0.5),
      p99: percentileOf(latencies, 0.99),
      lastRefusalAt: this.#lastRefusalAt,
      generatorCores: (user + system) / 1_000 / (this.#endedAt - this.#start),
    };
  }
}

/** 0 of no values: nothing was answered, or nothing was refused. */
function percentileOf(values: Float64Array, share: number): number {
  return values.length === 0 ? 0 : percentile(values, share);
}

class Connection {
  readonly #socket: Socket;
  readonly #load: StormLoad;
  readonly #tally: Tally;
  readonly #body: Buffer;
  /** In flight, by stream. Refusals may be held for long, so streams that are far apart are in flight together. */
  readonly #calls = new Map<number, { readonly startedAt: number; hasMessage: boolean }>();
  readonly #frames = new FrameReader((type, flags, stream, payload) =>
    this.#frame(type, flags, stream, payload),
  );
  readonly opened = Promise.withResolvers<void>();
  #nextStream = 1;
  #out: Buffer[] = [];
  #isClosing = false;
  /** What the server allows. */
  #most = Infinity;

  constructor(load: StormLoad, tally: Tally) {
    this.#load = load;
    this.#tally = tally;
    const message = GenerateIdRequest.encode({ tag: load.tag, name: "" }).finish();
    this.#body = framed(message);
    const [host = "", port = ""] = load.address.split(":");
    this.#socket = connect({ host, port: Number(port), localAddress: load.from, noDelay: true });
    this.#socket.once("connect", () => this.#begin());
    this.#socket.on("data", (chunk) => this.#read(chunk));
    this.#socket.once("error", (error) => this.#fail(error));
    this.#socket.once("close", () => this.#fail(new Error("the server closed the connection")));
  }

  get inFlight(): number {
    return this.#calls.size;
  }

  get isFull(): boolean {
    return this.#calls.size >= Math.min(this.#load.streams, this.#most);
  }

  offer(): void {
    this.#tally.offered++;
    this.call();
  }

  call(): void {
    const stream = this.#nextStream;
    this.#nextStream += 2;
    this.#calls.set(stream, { startedAt: performance.now(), hasMessage: false });
    const headers = stream === 1 ? firstHeaders(this.#load.address, PATH) : LATER_HEADERS;
    this.#out.push(
      frame(TYPE.headers, END_HEADERS, stream, headers),
      frame(TYPE.data, END_STREAM, stream, this.#body),
    );
  }

  flush(): void {
    if (this.#out.length > 0) this.#socket.write(Buffer.concat(this.#out));
    this.#out = [];
  }

  close(): void {
    this.#isClosing = true;
    this.#socket.destroy();
  }

  #begin(): void {
    const window = Buffer.alloc(4);
    window.writeUInt32BE(2 ** 31 - 1 - 65_535);
    this.#out.push(
      PREFACE,
      frame(TYPE.settings, 0, 0, Buffer.alloc(0)),
      frame(TYPE.window, 0, 0, window),
    );
    this.flush();
    this.opened.resolve();
  }

  #read(chunk: Buffer): void {
    this.#frames.read(chunk);
    this.flush();
  }

  #frame(type: number, flags: number, stream: number, payload: Buffer): void {
    const call = this.#calls.get(stream);
    if (type === TYPE.settings && (flags & ACK) === 0) {
      this.#most = streamsAllowed(payload) ?? this.#most;
      this.#out.push(frame(TYPE.settings, ACK, 0, Buffer.alloc(0)));
    } else if (type === TYPE.ping && (flags & ACK) === 0) {
      this.#out.push(frame(TYPE.ping, ACK, 0, payload));
    } else if (type === TYPE.goAway) {
      this.#fail(new Error("the server said good-bye"));
    } else if (type === TYPE.data && payload.length > 5 && call !== undefined) {
      call.hasMessage = true;
      if (this.#load.idsFile !== undefined) {
        this.#tally.ids.push(GenerateIdResponse.decode(payload.subarray(5)).id);
      }
    }
    const isEnd = (type === TYPE.data || type === TYPE.headers) && (flags & END_STREAM) !== 0;
    if (call === undefined || (!isEnd && type !== TYPE.reset)) return;
    this.#calls.delete(stream);
    // A refusal has no message, whatever its status says.
    const kind = type === TYPE.reset ? "reset" : call.hasMessage ? "answered" : "refused";
    this.#tally.ended(kind, call.startedAt);
    if (this.#load.callsPerSecond === 0 && !this.#tally.isOver && !this.isFull) this.offer();
  }

  #fail(error: Error): void {
    if (this.#isClosing) return;
    console.error(error.message);
    process.exit(1);
  }
}

async function run(load: StormLoad): Promise<StormResult> {
  const tally = new Tally(load);
  const connections = Array.from({ length: load.connections }, () => new Connection(load, tally));
  await Promise.all(connections.map(({ opened }) => opened.promise));
  const start = performance.now();
  let end = start + load.seconds * 1_000;
  // Whoever is told to stop says what came of it.
  process.once("SIGTERM", () => (end = 0));
  let at = 0;
  const offerOne = (): void => {
    tally.offered++;
    // The next connection that has room.
    for (let tries = 0; tries < connections.length; tries++) {
      const connection = connections[at++ % connections.length];
      if (connection === undefined || connection.isFull) continue;
      connection.call();
      return;
    }
    tally.unsent++;
  };
  // Of as many as may be in flight, each is followed by another when it is answered.
  if (load.callsPerSecond === 0) {
    for (const connection of connections) while (!connection.isFull) connection.offer();
  }
  for (let now = start; now < end; now = performance.now()) {
    if (load.callsPerSecond > 0) {
      const due = Math.floor(((now - start) / 1_000) * load.callsPerSecond);
      const late = due - tally.offered - Math.ceil((MAX_LATE_MS / 1_000) * load.callsPerSecond);
      if (late > 0) {
        tally.offered += late;
        tally.unsent += late;
      }
      while (tally.offered < due) offerOne();
    }
    for (const connection of connections) connection.flush();
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  }
  tally.close();
  const result = tally.result();
  const drainedBy = performance.now() + DRAIN_MS;
  while (connections.some(({ inFlight }) => inFlight > 0) && performance.now() < drainedBy) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  for (const connection of connections) connection.close();
  if (load.idsFile !== undefined) writeFileSync(load.idsFile, BigUint64Array.from(tally.ids));
  const { answered, refused, reset } = tally;
  return { ...result, answered, refused, reset };
}

if (import.meta.main) {
  console.log(JSON.stringify(await run(JSON.parse(process.argv[2] ?? "{}") as StormLoad)));
}
