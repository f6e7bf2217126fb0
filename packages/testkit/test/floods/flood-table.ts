// What a hostile caller sends: each flood as an endless row of chunks for one connection.
import { GenerateIdRequest } from "@idmint/proto";
import { framed } from "../../bench/lib/h2load.ts";
import {
  END_HEADERS,
  END_STREAM,
  firstHeaders,
  frame,
  LATER_HEADERS,
  PREFACE,
  TYPE,
} from "../../bench/lib/http2-frames.ts";

/** About so much is written at once. */
const CHUNK_BYTES = 32 * 1_024;
export const CONTINUATION = 9;
const CANCEL = Buffer.from([0, 0, 0, 8]);
export const GENERATE_ID = "/idmint.v1.IdService/GenerateId";
const NOTHING = Buffer.alloc(0);
/** Settings by which a caller takes no answers: INITIAL_WINDOW_SIZE is 0. */
const NO_WINDOW = Buffer.from([0, 4, 0, 0, 0, 0]);

export interface Flood {
  readonly connections: number;
  /** What a connection says first. Empty: it says nothing at all, not even the hello of TLS. */
  readonly opening: Buffer;
  /** What it says then, as fast as the server takes it. Undefined: nothing. */
  readonly chunks?: (tag: string) => Generator<Buffer, void>;
  /** What it speaks over TLS. Default: h2. */
  readonly alpn?: "http/1.1";
  /** Whether it takes answers. Default: true. */
  readonly reads?: boolean;
  /** It keeps open what costs memory, on many connections: only of the fast door there is something to promise then. */
  readonly ofFast?: boolean;
  /** How much more memory it may take behind the fast door, in MB. Default: what every other flood may. */
  readonly mostMb?: Readonly<Record<"plain" | "tls", number>>;
}

export const hello = (settings: Uint8Array = NOTHING): Buffer =>
  Buffer.concat([PREFACE, frame(TYPE.settings, 0, 0, settings)]);

/** Frames of many streams, numbered on. Ends when the numbers do, and with them the connection. */
function* streams(
  path: string,
  ofStream: (stream: number, headers: Buffer) => readonly Buffer[],
): Generator<Buffer, void> {
  let headers = firstHeaders("flood", path);
  for (let stream = 1; stream < 2 ** 31;) {
    const frames: Buffer[] = [];
    for (let bytes = 0; bytes < CHUNK_BYTES && stream < 2 ** 31; stream += 2) {
      const more = ofStream(stream, headers);
      headers = LATER_HEADERS;
      frames.push(...more);
      for (const each of more) bytes += each.length;
    }
    yield Buffer.concat(frames);
  }
}

/** The same frame for ever. */
function* again(one: Buffer): Generator<Buffer, void> {
  const many = Buffer.concat(
    Array.from({ length: Math.ceil(CHUNK_BYTES / one.length) }, () => one),
  );
  for (;;) yield many;
}

/** Calls that are cancelled as soon as they are made: each costs the server a stream, and whatever a call begins. */
function resetCalls(tag: string): Generator<Buffer, void> {
  const message = framed(GenerateIdRequest.encode({ tag, name: "" }).finish());
  return streams(GENERATE_ID, (stream, headers) => [
    frame(TYPE.headers, END_HEADERS, stream, headers),
    frame(TYPE.data, END_STREAM, stream, message),
    frame(TYPE.reset, 0, stream, CANCEL),
  ]);
}

/** Streams that are reset before they are calls. */
function resetStreams(): Generator<Buffer, void> {
  return streams(GENERATE_ID, (stream, headers) => [
    frame(TYPE.headers, END_HEADERS, stream, headers),
    frame(TYPE.reset, 0, stream, CANCEL),
  ]);
}

/** A message of 16 KiB in frames of one byte, on 64 streams in turn. */
function* oneByteData(): Generator<Buffer, void> {
  const open = 64;
  const size = 16 * 1_024 - 5;
  const prefix = Buffer.from([0, 0, 0, size >> 8, size & 0xff]);
  let headers = firstHeaders("flood", GENERATE_ID);
  for (let first = 1; first < 2 ** 31; first += 2 * open) {
    const numbers = Array.from({ length: open }, (_, at) => first + 2 * at);
    for (const stream of numbers) {
      yield frame(TYPE.headers, END_HEADERS, stream, headers);
      headers = LATER_HEADERS;
      yield frame(TYPE.data, 0, stream, prefix);
    }
    const round = Buffer.concat(
      Array.from({ length: CHUNK_BYTES / 10 }, (_, at) =>
        frame(TYPE.data, 0, numbers[at % open] ?? 0, Buffer.from([8])),
      ),
    );
    for (let sent = 0; sent < size * open; sent += CHUNK_BYTES / 10) yield round;
  }
}

/** A string of HPACK of 127 to 16,510 bytes, as it is. */
function longText(bytes: Buffer): Buffer {
  const rest = bytes.length - 127;
  return Buffer.concat([Buffer.from([0x7f, (rest & 0x7f) | 0x80, rest >> 7]), bytes]);
}

/** A block of headers that grows when it is unpacked: an entry of 4,000 bytes, named 100 times. */
function hugeMetadata(): Generator<Buffer, void> {
  const value = Buffer.alloc(3_900, "x");
  const entry = Buffer.concat([Buffer.from([0x40, 2]), Buffer.from("xx"), longText(value)]);
  let isFirst = true;
  return streams(GENERATE_ID, (stream) => {
    const block = Buffer.concat([
      Buffer.from([0x83, 0x86]),
      isFirst ? entry : NOTHING,
      Buffer.alloc(100, 0x80 | 62),
    ]);
    isFirst = false;
    return [frame(TYPE.headers, END_HEADERS, stream, block)];
  });
}

/** A block of headers that never ends. */
function* continuation(): Generator<Buffer, void> {
  yield frame(TYPE.headers, 0, 1, firstHeaders("flood", GENERATE_ID));
  yield* again(frame(CONTINUATION, 0, 1, Buffer.from([0x00, 1, 0x78, 1, 0x78])));
}

function calls(path: string, message: Uint8Array): Generator<Buffer, void> {
  return streams(path, (stream, headers) => [
    frame(TYPE.headers, END_HEADERS, stream, headers),
    frame(TYPE.data, END_STREAM, stream, framed(message)),
  ]);
}

/** Calls whose answers nobody takes. */
function unreadAnswers(tag: string): Generator<Buffer, void> {
  return calls(GENERATE_ID, GenerateIdRequest.encode({ tag, name: "" }).finish());
}

/** The same, of calls that admission refuses to nobody and that are answered at once. */
function unreadChecks(): Generator<Buffer, void> {
  return calls("/grpc.health.v1.Health/Check", NOTHING);
}

/** Calls that never end: each has a head of its own, and half a message. */
function* halfRequests(): Generator<Buffer, void> {
  // `authorization` is 23 in the static table, and enters no other.
  const head = Buffer.concat([Buffer.from([0x0f, 23 - 15]), longText(Buffer.alloc(5_000, "x"))]);
  const half = Buffer.concat([Buffer.from([0, 0, 0, 0x3f, 0xff]), Buffer.alloc(1_000)]);
  const places = 1_024;
  for (let stream = 1; stream < 2 * places; stream += 2) {
    const fields = stream === 1 ? firstHeaders("flood", GENERATE_ID) : LATER_HEADERS;
    yield Buffer.concat([
      frame(TYPE.headers, END_HEADERS, stream, Buffer.concat([fields, head])),
      frame(TYPE.data, 0, stream, half),
    ]);
  }
}

/** Calls of a method that is not there: an answer is many times as long as what asks for it. */
function unknownCalls(): Generator<Buffer, void> {
  return streams(`/${"x".repeat(120)}`, (stream, headers) => [
    frame(TYPE.headers, END_HEADERS | END_STREAM, stream, headers),
  ]);
}

const PING = frame(TYPE.ping, 0, 0, Buffer.alloc(8));

export const FLOODS = {
  "reset calls": { connections: 4, opening: hello(), chunks: resetCalls },
  "reset streams": { connections: 4, opening: hello(), chunks: resetStreams },
  CONTINUATION: { connections: 4, opening: hello(), chunks: continuation },
  ping: { connections: 4, opening: hello(), chunks: () => again(PING) },
  "ping of many": {
    connections: 256,
    opening: hello(),
    chunks: () => again(PING),
    ofFast: true,
    mostMb: { plain: 160, tls: 160 },
  },
  settings: {
    connections: 4,
    opening: hello(),
    chunks: () => again(frame(TYPE.settings, 0, 0, NOTHING)),
  },
  "huge metadata": { connections: 4, opening: hello(), chunks: hugeMetadata },
  "one-byte DATA": { connections: 4, opening: hello(), chunks: oneByteData },
  "zero window": { connections: 4, opening: hello(NO_WINDOW), chunks: unreadAnswers },
  "zero window of many": {
    connections: 128,
    opening: hello(NO_WINDOW),
    chunks: unreadChecks,
    // Of TLS, each answer is in memory twice, and OpenSSL has buffers of its own.
    ofFast: true,
    mostMb: { plain: 192, tls: 400 },
  },
  "half requests": {
    connections: 64,
    opening: hello(),
    chunks: halfRequests,
    ofFast: true,
    mostMb: { plain: 160, tls: 192 },
  },
  "unread answers": {
    connections: 64,
    opening: hello(),
    chunks: unknownCalls,
    reads: false,
    ofFast: true,
    mostMb: { plain: 160, tls: 192 },
  },
  "half-open connections": {
    connections: 1_000,
    opening: NOTHING,
    mostMb: { plain: 64, tls: 96 },
  },
  // 1,000 connections of TLS take 60 MB by themselves.
  "idle connections": { connections: 1_000, opening: hello(), mostMb: { plain: 64, tls: 96 } },
} as const satisfies Record<string, Flood>;

export type FloodName = keyof typeof FLOODS;
