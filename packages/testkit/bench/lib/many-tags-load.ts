// A load generator for calls that differ: each asks another tag. h2load sends one body only. It speaks just enough HTTP/2
// for unary calls, on plain sockets, at about a tenth of the server's cost.
// Usage: many-tags-load.ts '{"address":…,"prefix":…,"tags":…,"connections":…,"streams":…,"seconds":…}'. Writes one line of JSON.
import { connect, type Socket } from "node:net";
import { CreateTagRequest, GenerateIdRequest, Tag } from "@idmint/proto";
import { framed } from "./h2load.ts";
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

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
const FRAME_HEAD = 9;
const TYPE = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goAway: 7, window: 8 } as const;
const END_STREAM = 1;
const END_HEADERS = 4;
const ACK = 1;
/** Places for what is known of a stream; more than there are calls in flight. */
const PLACES = 4_096;
const PATHS = {
  generate: "/idmint.v1.IdService/GenerateId",
  create: "/idmint.v1.TagService/CreateTag",
} as const;

function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(FRAME_HEAD + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(stream, 5);
  bytes.set(payload, FRAME_HEAD);
  return bytes;
}

/** A string as it is, without Huffman's code. */
function text(string: string): Buffer {
  return Buffer.concat([Buffer.from([string.length]), Buffer.from(string, "latin1")]);
}

/** A literal header that both ends add to their tables; `name` is its number in the static table, or a new name. */
function literal(name: number | string, value: string): Buffer {
  return typeof name === "number"
    ? Buffer.concat([Buffer.from([0x40 | name]), text(value)])
    : Buffer.concat([Buffer.from([0x40]), text(name), text(value)]);
}

/** Static table of HPACK: 1 :authority, 3 :method POST, 4 :path, 6 :scheme http, 31 content-type. */
function firstHeaders(address: string, path: string): Buffer {
  return Buffer.concat([
    Buffer.from([0x83, 0x86]),
    literal(4, path),
    literal(1, address),
    literal(31, "application/grpc"),
    literal("te", "trailers"),
  ]);
}

/** The same by number: what the first block added, newest first, from 62 on. */
const LATER_HEADERS = Buffer.from([0x83, 0x86, 0x80 | 65, 0x80 | 64, 0x80 | 63, 0x80 | 62]);

class Connection {
  readonly #socket: Socket;
  readonly #load: ManyTagsLoad;
  readonly #nextMessage: () => Uint8Array | undefined;
  readonly #ended: (ok: boolean, ms: number) => void;
  readonly #startedAt = new Float64Array(PLACES);
  readonly #hasMessage = new Uint8Array(PLACES);
  #nextStream = 1;
  #inFlight = 0;
  #rest: Buffer = Buffer.alloc(0);
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
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= FRAME_HEAD) {
      const length = bytes.readUIntBE(at, 3);
      const end = at + FRAME_HEAD + length;
      if (bytes.length < end) break;
      const [type = 0, flags = 0] = [bytes[at + 3], bytes[at + 4]];
      this.#frame(type, flags, bytes.readUInt32BE(at + 5), bytes.subarray(at + FRAME_HEAD, end));
      at = end;
    }
    this.#rest = bytes.subarray(at);
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
        : GenerateIdRequest.encode({ tag: name }).finish();
    };
  }
  return () => {
    if (isOver()) return undefined;
    const tag = `${load.prefix}${Math.floor(Math.random() * load.tags)}`;
    return GenerateIdRequest.encode({ tag }).finish();
  };
}

function createMessage(name: string): Uint8Array {
  const segment = { start: 0n, min: 0, max: 0, holdFor: undefined, maxAge: undefined };
  const kind = { $case: "segment", value: segment } as const;
  return CreateTagRequest.encode({ tag: { ...Tag.create(), name, kind } }).finish();
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
