// A load generator for calls that differ: each asks another tag. h2load sends one body only. It speaks just enough HTTP/2
// for unary calls, on plain sockets, at about a tenth of the server's cost.
// Usage: many-tags-load.ts '{"address":…,"prefix":…,"tags":…,"connections":…,"streams":…,"seconds":…}'. Writes one line of JSON.
import { connect, type Socket } from "node:net";
import { CreateTagRequest, GenerateIdRequest, Tag } from "@idmint/proto";
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

/** What to ask. Tags are called `${prefix}${n}`, n below `tags`. */
export interface ManyTagsLoad {
  readonly address: string;
  /** `generate`: an id of a tag chosen at random; `create`: makes each tag once. */
  readonly call: "generate" | "create";
  readonly prefix: string;
  readonly tags: number;
  readonly connections: number;
  readonly streams: number;
  /** How long; ignored by `create`, which ends when all are made. */
  readonly seconds: number;
  /** Ask each tag once, in order, instead of at random for `seconds`. */
  readonly once: boolean;
}

export interface ManyTagsResult {
  readonly answered: number;
  readonly refused: number;
  readonly callsPerSecond: number;
  readonly p50: number;
  readonly p99: number;
}

/** Places for what is known of a stream; more than there are calls in flight. */
const PLACES = 4_096;
const PATHS = {
  generate: "/idmint.v1.IdService/GenerateId",
  create: "/idmint.v1.TagService/CreateTag",
} as const;

class Connection {
  readonly #socket: Socket;
  readonly #load: ManyTagsLoad;
  readonly #nextMessage: () => Uint8Array | undefined;
  readonly #ended: (ok: boolean, ms: number) => void;
  readonly #startedAt = new Float64Array(PLACES);
  readonly #hasMessage = new Uint8Array(PLACES);
  readonly #frames = new FrameReader((type, flags, stream, payload) =>
    this.#frame(type, flags, stream, payload),
  );
  #nextStream = 1;
  #inFlight = 0;
  #out: Buffer[] = [];
  #isDone = false;
  readonly done = Promise.withResolvers<void>();

  constructor(
    load: ManyTagsLoad,
    nextMessage: () => Uint8Array | undefined,
    ended: (ok: boolean, ms: number) => void,
  ) {
    this.#load = load;
    this.#nextMessage = nextMessage;
    this.#ended = ended;
    const [host = "", port = ""] = load.address.split(":");
    this.#socket = connect({ host, port: Number(port), noDelay: true });
    this.#socket.once("connect", () => this.#begin());
    this.#socket.on("data", (chunk) => this.#read(chunk));
    this.#socket.once("error", (error) => this.done.reject(error));
    this.#socket.once("close", () => {
      if (this.#isDone) this.done.resolve();
      else this.done.reject(new Error("the server closed the connection"));
    });
  }

  #begin(): void {
    const window = Buffer.alloc(4);
    window.writeUInt32BE(2 ** 31 - 1 - 65_535);
    this.#out.push(
      PREFACE,
      frame(TYPE.settings, 0, 0, Buffer.alloc(0)),
      frame(TYPE.window, 0, 0, window),
    );
    for (let i = 0; i < this.#load.streams; i++) this.#call();
    this.#flush();
  }

  #call(): void {
    const message = this.#nextMessage();
    if (message === undefined) {
      this.#isDone = this.#inFlight === 0;
      return;
    }
    const stream = this.#nextStream;
    this.#nextStream += 2;
    const place = (stream >> 1) % PLACES;
    this.#startedAt[place] = performance.now();
    this.#hasMessage[place] = 0;
    this.#inFlight++;
    const headers =
      stream === 1 ? firstHeaders(this.#load.address, PATHS[this.#load.call]) : LATER_HEADERS;
    this.#out.push(
      frame(TYPE.headers, END_HEADERS, stream, headers),
      frame(TYPE.data, END_STREAM, stream, framed(message)),
    );
  }

  #flush(): void {
    // Nobody waits for what comes after the last answer.
    if (this.#socket.writableEnded) return;
    if (this.#out.length > 0) this.#socket.write(Buffer.concat(this.#out));
    this.#out = [];
    if (this.#isDone) this.#socket.end();
  }

  #read(chunk: Buffer): void {
    this.#frames.read(chunk);
    this.#flush();
  }

  #frame(type: number, flags: number, stream: number, payload: Buffer): void {
    const place = (stream >> 1) % PLACES;
    if (type === TYPE.settings && (flags & ACK) === 0) {
      this.#out.push(frame(TYPE.settings, ACK, 0, Buffer.alloc(0)));
    } else if (type === TYPE.ping && (flags & ACK) === 0) {
      this.#out.push(frame(TYPE.ping, ACK, 0, payload));
    } else if (type === TYPE.goAway) {
      this.#socket.destroy(new Error("the server said good-bye"));
    } else if (type === TYPE.data && payload.length > 5) {
      this.#hasMessage[place] = 1;
    }
    const isEnd = (type === TYPE.data || type === TYPE.headers) && (flags & END_STREAM) !== 0;
    if (!isEnd && type !== TYPE.reset) return;
    this.#inFlight--;
    // A refusal has no message, whatever its status says.
    const isOk = type !== TYPE.reset && this.#hasMessage[place] === 1;
    this.#ended(isOk, performance.now() - (this.#startedAt[place] ?? 0));
    this.#call();
  }
}

/** Messages to send, until there are no more. */
function messages(load: ManyTagsLoad, isOver: () => boolean): () => Uint8Array | undefined {
  let next = 0;
  if (load.call === "create" || load.once) {
    return () => {
      if (next >= load.tags) return undefined;
      const name = `${load.prefix}${next++}`;
      return load.call === "create"
        ? createMessage(name)
        : GenerateIdRequest.encode({ tag: name, name: "" }).finish();
    };
  }
  return () => {
    if (isOver()) return undefined;
    const tag = `${load.prefix}${Math.floor(Math.random() * load.tags)}`;
    return GenerateIdRequest.encode({ tag, name: "" }).finish();
  };
}

function createMessage(name: string): Uint8Array {
  const segment = {
    start: 0n,
    min: 0,
    max: 0,
    holdFor: undefined,
    maxAge: undefined,
    tinyidStep: 0,
  };
  const kind = { $case: "segment", value: segment } as const;
  return CreateTagRequest.encode({
    tag: { ...Tag.create(), name, kind },
    validateOnly: false,
  }).finish();
}

async function run(load: ManyTagsLoad): Promise<ManyTagsResult> {
  const start = performance.now();
  const end = start + load.seconds * 1_000;
  const latencies: number[] = [];
  let refused = 0;
  const next = messages(load, () => performance.now() >= end);
  const connections = Array.from(
    { length: load.connections },
    () =>
      new Connection(load, next, (ok, ms) => {
        if (ok) latencies.push(ms);
        else refused++;
      }),
  );
  await Promise.all(connections.map(({ done }) => done.promise));
  const seconds = (performance.now() - start) / 1_000;
  const sorted = Float64Array.from(latencies).toSorted();
  return {
    answered: sorted.length,
    refused,
    callsPerSecond: sorted.length / seconds,
    p50: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
  };
}

if (import.meta.main) {
  console.log(JSON.stringify(await run(JSON.parse(process.argv[2] ?? "{}") as ManyTagsLoad)));
}
