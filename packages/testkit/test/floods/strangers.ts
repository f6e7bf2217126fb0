// Connections without a token that begin as much as they may and end nothing of it, on the doors of gRPC and of HTTP.
import {
  END_HEADERS,
  END_STREAM,
  firstHeaders,
  frame,
  TYPE,
} from "../../bench/lib/http2-frames.ts";
import { CONTINUATION, type Flood, GENERATE_ID, hello } from "./flood-table.ts";

/** The flood of each door that does nothing, and those that are measured by it. */
export interface Strangers extends Flood {
  readonly door: "grpc" | "http";
}

/** As many fields as a table holds: each counts its two letters and 32 bytes (RFC 7541, 4.1). */
const TABLE: Buffer = Buffer.concat(
  Array.from({ length: 4_096 / 34 }, (_, at) =>
    Buffer.concat([
      Buffer.from([0x40, 2]),
      Buffer.from((36 + at).toString(36).padStart(2, "a")),
      Buffer.from([0]),
    ]),
  ),
);
const HALF = 7_900;

/** A table that is full, headers that do not end, and part of a frame behind them. */
function* begun(): Generator<Buffer, void> {
  const fields = Buffer.concat([firstHeaders("flood", GENERATE_ID), TABLE]);
  yield frame(TYPE.headers, END_HEADERS | END_STREAM, 1, fields);
  yield frame(TYPE.headers, 0, 3, Buffer.alloc(HALF));
  yield frame(CONTINUATION, 0, 3, Buffer.alloc(HALF)).subarray(0, HALF);
}

const PROBE = Buffer.from("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
const POST =
  "POST /idmint.v1.IdService/GenerateId HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
/** What the server takes of a body, but for one byte. */
const BODY = 64 * 1_024;

/** What comes behind the first bytes of a connection. */
function once(text: string): () => Generator<Buffer, void> {
  return function* chunks() {
    yield Buffer.from(text);
  };
}

const http = { door: "http", connections: 600, alpn: "http/1.1" } as const;

export const STRANGERS = {
  "gRPC that does nothing": { door: "grpc", connections: 600, opening: hello() },
  "tables, headers and frames": {
    door: "grpc",
    connections: 600,
    opening: hello(),
    chunks: begun,
  },
  "HTTP that does nothing": { ...http, opening: PROBE },
  "half headers": {
    ...http,
    opening: Buffer.from("GET /healthz HTTP/1.1\r\nhost: localhost\r\n"),
    chunks: once("ab:\r\n".repeat(3_000)),
  },
  "half bodies": {
    ...http,
    opening: Buffer.from(`${POST}content-length: ${BODY}\r\n\r\n`),
    chunks: once(" ".repeat(BODY - 1)),
  },
  "small chunks": {
    ...http,
    opening: Buffer.from(`${POST}transfer-encoding: chunked\r\n\r\n`),
    // As many as a body may have. Each took 300 bytes by itself.
    chunks: once(`40\r\n${" ".repeat(64)}\r\n`.repeat(1_023)),
  },
} as const satisfies Record<string, Strangers>;

export type StrangerName = keyof typeof STRANGERS;
