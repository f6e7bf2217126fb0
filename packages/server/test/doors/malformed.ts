// What both doors of gRPC answer to requests that no client sends, such as those of a fuzzer or a broken proxy. grpc-js takes more
// than it should: it does not look at what follows the one message of a call, takes a flag that it does not know for 0, every
// content type that begins with application/grpc, and any method of HTTP. No id is issued twice for that, and none goes to somebody
// else. Both refuse a Host beside another :authority, since a proxy may have looked at either.
import { gzipSync } from "node:zlib";
import { GenerateIdRequest } from "@idmint/proto";
import { FLAG, FRAME, PREFACE, SETTING } from "../../src/fast/http2/frames.ts";
import type { Field } from "../../src/fast/http2/hpack/encode.ts";
import { GREETING } from "../fast/frames.ts";
import {
  block,
  data,
  frame,
  NOTHING,
  number,
  request,
  settings,
  SETTINGS_ACK,
} from "../fast/test-connection.ts";
import { framed } from "../fast/wire.ts";

const PATH = "/idmint.v1.IdService/GenerateId";
const ORDER = framed(GenerateIdRequest.encode({ tag: "orders", name: "" }).finish());
const BARE = ORDER.subarray(5);
const { END_STREAM, END_HEADERS, PADDED, PRIORITY, ACK } = FLAG;

/** A request whose head has more fields. */
const call = (body: Uint8Array, ...more: readonly Field[]): Buffer[] => [
  request(1, PATH, 0, more),
  data(1, body, END_STREAM),
];
/** A request with exactly these fields. */
const asIs = (...fields: readonly Field[]): Buffer[] => [
  frame(FRAME.HEADERS, END_HEADERS, 1, block(fields)),
  data(1, ORDER, END_STREAM),
];
const usual = (but: Readonly<Record<string, string>>): Field[] =>
  Object.entries({
    ":method": "POST",
    ":scheme": "http",
    ":path": PATH,
    ":authority": "here",
    "content-type": "application/grpc",
    te: "trailers",
    ...but,
  });
const begun = request(1, PATH);
const gzip: Field = ["grpc-encoding", "gzip"];

/** What it is, its bytes behind the greeting, and what both doors answer, or the fast one and the other one. */
export type Row = readonly [
  what: string,
  bytes: readonly Uint8Array[],
  fast: string,
  grpcJs?: string,
];

const messages: readonly Row[] = [
  ["a request without a body", [request(1, PATH, END_STREAM)], "UNIMPLEMENTED"],
  ["an empty body", call(NOTHING), "UNIMPLEMENTED"],
  ["half a prefix", call(ORDER.subarray(0, 3)), "INTERNAL", "UNIMPLEMENTED"],
  ["half a message", call(ORDER.subarray(0, -1)), "INTERNAL", "UNIMPLEMENTED"],
  [
    "a message and a half",
    call(Buffer.concat([ORDER, ORDER.subarray(0, -1)])),
    "INTERNAL",
    "answered",
  ],
  ["two messages", call(Buffer.concat([ORDER, ORDER])), "UNIMPLEMENTED"],
  ["a flag that is neither 0 nor 1", call(framed(BARE, 2)), "INTERNAL", "answered"],
  [
    "a compressed flag without an encoding",
    call(framed(gzipSync(BARE), 1)),
    "INTERNAL",
    "INVALID_ARGUMENT",
  ],
  [
    "a compressed flag with the encoding identity",
    call(framed(gzipSync(BARE), 1), ["grpc-encoding", "identity"]),
    "INTERNAL",
    "INVALID_ARGUMENT",
  ],
  ["bytes that are not gzip", call(framed(BARE, 1), gzip), "INTERNAL"],
  ["gzip that ends too early", call(framed(gzipSync(BARE).subarray(0, -4), 1), gzip), "INTERNAL"],
  [
    "a message that decompresses to too much",
    call(framed(gzipSync(Buffer.alloc(2 ** 20)), 1), gzip),
    "RESOURCE_EXHAUSTED",
  ],
  [
    "a message of more than 16 KiB",
    [begun, data(1, Buffer.from([0, 0, 0, 0x40, 1]))],
    "RESOURCE_EXHAUSTED",
  ],
  [
    "a compressed message of more than 16 KiB",
    [begun, data(1, Buffer.from([1, 0, 0, 0x40, 1]))],
    "RESOURCE_EXHAUSTED",
  ],
  ["an unknown encoding", call(framed(BARE, 1), ["grpc-encoding", "br"]), "UNIMPLEMENTED"],
  [
    "an unknown encoding that no message has",
    call(ORDER, ["grpc-encoding", "br"]),
    "UNIMPLEMENTED",
    "answered",
  ],
  ["a message that is none of protobuf", call(framed(Buffer.alloc(3, 0xff))), "INVALID_ARGUMENT"],
  [
    "a request that is not whole at its deadline",
    [request(1, PATH, 0, [["grpc-timeout", "100m"]]), data(1, ORDER)],
    "DEADLINE_EXCEEDED",
  ],
  [
    "a head alone at its deadline",
    [request(1, PATH, 0, [["grpc-timeout", "100m"]])],
    "DEADLINE_EXCEEDED",
  ],
  ["a grpc-timeout without a unit", call(ORDER, ["grpc-timeout", "1"]), "INTERNAL"],
  [
    "a grpc-timeout of nine digits",
    call(ORDER, ["grpc-timeout", "100000000S"]),
    "INTERNAL",
    "answered",
  ],
  ["a grpc-timeout of 25 days", call(ORDER, ["grpc-timeout", "600H"]), "answered"],
];
const heads: readonly Row[] = [
  ["another content-type", asIs(...usual({ "content-type": "application/json" })), "HTTP 415"],
  [
    "the content-type of gRPC-Web",
    asIs(...usual({ "content-type": "application/grpc-web+proto" })),
    "HTTP 415",
    "answered",
  ],
  ["another method of HTTP", asIs(...usual({ ":method": "PUT" })), "HTTP 405", "answered"],
  [
    "a method of gRPC that is not there",
    asIs(...usual({ ":path": "/idmint.v1.IdService/No" })),
    "UNIMPLEMENTED",
  ],
  [
    "a path without a slash",
    asIs(...usual({ ":path": "no" })),
    "UNIMPLEMENTED",
    "RST_STREAM PROTOCOL_ERROR",
  ],
  ["an empty path", asIs(...usual({ ":path": "" })), "RST_STREAM PROTOCOL_ERROR"],
  [
    "no :path",
    asIs(...usual({}).filter(([name]) => name !== ":path")),
    "RST_STREAM PROTOCOL_ERROR",
  ],
  [
    "no :scheme",
    asIs(...usual({}).filter(([name]) => name !== ":scheme")),
    "RST_STREAM PROTOCOL_ERROR",
  ],
  [
    "no :authority",
    asIs(...usual({}).filter(([name]) => name !== ":authority")),
    "answered",
    "RST_STREAM PROTOCOL_ERROR",
  ],
  ["two :path", asIs([":path", PATH], ...usual({})), "RST_STREAM PROTOCOL_ERROR"],
  ["two :authority", asIs([":authority", "there"], ...usual({})), "RST_STREAM PROTOCOL_ERROR"],
  ["a Host that is the :authority", asIs(...usual({ host: "here" })), "answered"],
  ["a Host that is another one", asIs(...usual({ host: "there" })), "RST_STREAM PROTOCOL_ERROR"],
  [
    "a Host without an :authority",
    asIs(...usual({ host: "there" }).filter(([name]) => name !== ":authority")),
    "answered",
  ],
  ["two Hosts", asIs(...usual({ host: "here" }), ["host", "there"]), "RST_STREAM PROTOCOL_ERROR"],
  [
    "a pseudo-header behind a field",
    asIs(...usual({}).slice(1), [":method", "POST"]),
    "RST_STREAM PROTOCOL_ERROR",
  ],
  ["an unknown pseudo-header", asIs(...usual({ ":status": "200" })), "RST_STREAM PROTOCOL_ERROR"],
  ["a name in capitals", asIs(...usual({ Large: "x" })), "RST_STREAM PROTOCOL_ERROR"],
  ["a name with a blank", asIs(...usual({ "a b": "x" })), "RST_STREAM PROTOCOL_ERROR", "answered"],
  [
    "a value with a line feed",
    asIs(...usual({ x: "a\nb" })),
    "RST_STREAM PROTOCOL_ERROR",
    "answered",
  ],
  [
    "a value with blanks around it",
    asIs(...usual({ x: " a " })),
    "RST_STREAM PROTOCOL_ERROR",
    "answered",
  ],
  [
    "a field of HTTP/1.1's connections",
    asIs(...usual({ connection: "close" })),
    "RST_STREAM PROTOCOL_ERROR",
  ],
  ["te other than trailers", asIs(...usual({ te: "gzip" })), "RST_STREAM PROTOCOL_ERROR"],
  ["no te", asIs(...usual({}).filter(([name]) => name !== "te")), "answered"],
  [
    "a content-length that is too small",
    asIs(...usual({ "content-length": "1" })),
    "RST_STREAM PROTOCOL_ERROR",
    "GOAWAY INTERNAL_ERROR",
  ],
  [
    "a content-length that is too large",
    asIs(...usual({ "content-length": "99" })),
    "RST_STREAM PROTOCOL_ERROR",
  ],
  [
    "a content-length that is no number",
    asIs(...usual({ "content-length": "x" })),
    "RST_STREAM PROTOCOL_ERROR",
  ],
  [
    "metadata of more than 8 KiB",
    asIs(...usual({ x: "x".repeat(8_300) })),
    "HTTP 431",
    "RST_STREAM ENHANCE_YOUR_CALM",
  ],
  [
    "trailers behind the body",
    [begun, data(1, ORDER), frame(FRAME.HEADERS, END_HEADERS | END_STREAM, 1, block([["x", "y"]]))],
    "answered",
  ],
  [
    "trailers with a pseudo-header",
    [
      begun,
      data(1, ORDER),
      frame(FRAME.HEADERS, END_HEADERS | END_STREAM, 1, block([[":path", "y"]])),
    ],
    "RST_STREAM PROTOCOL_ERROR",
  ],
  [
    "trailers without END_STREAM",
    [begun, data(1, ORDER), frame(FRAME.HEADERS, END_HEADERS, 1, block([["x", "y"]]))],
    "RST_STREAM PROTOCOL_ERROR",
  ],
];
const frames: readonly Row[] = [
  [
    "a frame of more than 16 KiB",
    [begun, data(1, Buffer.alloc(16_385))],
    "GOAWAY FRAME_SIZE_ERROR",
  ],
  ["an unknown frame", [frame(99, 0xff, 1, Buffer.alloc(9)), ...call(ORDER)], "answered"],
  [
    "the reserved bit of a stream's number",
    [begun, data(0x80000001, ORDER, END_STREAM)],
    "answered",
  ],
  ["DATA on no stream", [data(0, ORDER)], "GOAWAY PROTOCOL_ERROR"],
  ["DATA on a stream that is idle", [data(1, ORDER)], "GOAWAY PROTOCOL_ERROR"],
  [
    "HEADERS on no stream",
    [frame(FRAME.HEADERS, END_HEADERS, 0, block(usual({})))],
    "GOAWAY PROTOCOL_ERROR",
  ],
  [
    "HEADERS on a stream of ours",
    [frame(FRAME.HEADERS, END_HEADERS, 2, block(usual({})))],
    "GOAWAY PROTOCOL_ERROR",
  ],
  ["HEADERS on a stream that ended", [...call(ORDER), request(1, PATH)], "GOAWAY STREAM_CLOSED"],
  [
    "DATA on a stream that ended",
    [...call(ORDER), data(1, ORDER)],
    "answered",
    "GOAWAY STREAM_CLOSED",
  ],
  [
    "padding as long as the frame",
    [begun, frame(FRAME.DATA, PADDED, 1, Buffer.from([4, 0, 0, 0]))],
    "GOAWAY PROTOCOL_ERROR",
  ],
  [
    "a header block that is left",
    [frame(FRAME.HEADERS, 0, 1, block(usual({}))), data(1, ORDER)],
    "GOAWAY PROTOCOL_ERROR",
  ],
  [
    "CONTINUATION of nothing",
    [frame(FRAME.CONTINUATION, END_HEADERS, 1, NOTHING)],
    "GOAWAY PROTOCOL_ERROR",
  ],
  [
    "an index beyond HPACK's tables",
    [frame(FRAME.HEADERS, END_HEADERS, 1, Buffer.from([0xff, 0x00]))],
    "GOAWAY COMPRESSION_ERROR",
  ],
  [
    "a priority on itself",
    [
      frame(
        FRAME.HEADERS,
        END_HEADERS | PRIORITY,
        1,
        Buffer.concat([number(1), Buffer.from([0]), block(usual({}))]),
      ),
      data(1, ORDER, END_STREAM),
    ],
    "RST_STREAM PROTOCOL_ERROR",
    "GOAWAY PROTOCOL_ERROR",
  ],
  [
    "PRIORITY on itself",
    [
      begun,
      frame(FRAME.PRIORITY, 0, 1, Buffer.concat([number(1), Buffer.from([0])])),
      data(1, ORDER, END_STREAM),
    ],
    "RST_STREAM PROTOCOL_ERROR",
    "answered",
  ],
  [
    "PRIORITY of 4 bytes",
    [begun, frame(FRAME.PRIORITY, 0, 1, number(1)), data(1, ORDER, END_STREAM)],
    "RST_STREAM FRAME_SIZE_ERROR",
    "GOAWAY FRAME_SIZE_ERROR",
  ],
  [
    "PRIORITY on no stream",
    [frame(FRAME.PRIORITY, 0, 0, Buffer.alloc(5))],
    "GOAWAY PROTOCOL_ERROR",
    "ignored",
  ],
  [
    "RST_STREAM on a stream that is idle",
    [frame(FRAME.RST_STREAM, 0, 1, number(8))],
    "GOAWAY PROTOCOL_ERROR",
  ],
  [
    "RST_STREAM of 3 bytes",
    [begun, frame(FRAME.RST_STREAM, 0, 1, Buffer.alloc(3))],
    "GOAWAY FRAME_SIZE_ERROR",
  ],
  ["SETTINGS on a stream", [frame(FRAME.SETTINGS, 0, 1, NOTHING)], "GOAWAY PROTOCOL_ERROR"],
  [
    "SETTINGS of 5 bytes",
    [frame(FRAME.SETTINGS, 0, 0, Buffer.alloc(5))],
    "GOAWAY FRAME_SIZE_ERROR",
  ],
  [
    "an acknowledgement with settings",
    [frame(FRAME.SETTINGS, ACK, 0, Buffer.alloc(6))],
    "GOAWAY FRAME_SIZE_ERROR",
  ],
  [
    "a window of 2^31 in SETTINGS",
    [settings([SETTING.INITIAL_WINDOW_SIZE, 2 ** 31])],
    "GOAWAY FLOW_CONTROL_ERROR",
  ],
  [
    "frames of 1 KiB in SETTINGS",
    [settings([SETTING.MAX_FRAME_SIZE, 1_024])],
    "GOAWAY PROTOCOL_ERROR",
  ],
  ["ENABLE_PUSH 2 in SETTINGS", [settings([SETTING.ENABLE_PUSH, 2])], "GOAWAY PROTOCOL_ERROR"],
  ["PUSH_PROMISE", [frame(FRAME.PUSH_PROMISE, END_HEADERS, 1, number(2))], "GOAWAY PROTOCOL_ERROR"],
  ["PING of 7 bytes", [frame(FRAME.PING, 0, 0, Buffer.alloc(7))], "GOAWAY FRAME_SIZE_ERROR"],
  ["PING on a stream", [frame(FRAME.PING, 0, 1, Buffer.alloc(8))], "GOAWAY PROTOCOL_ERROR"],
  ["GOAWAY of 7 bytes", [frame(FRAME.GOAWAY, 0, 0, Buffer.alloc(7))], "GOAWAY FRAME_SIZE_ERROR"],
  ["GOAWAY on a stream", [frame(FRAME.GOAWAY, 0, 1, Buffer.alloc(8))], "GOAWAY PROTOCOL_ERROR"],
  [
    "WINDOW_UPDATE of 3 bytes",
    [frame(FRAME.WINDOW_UPDATE, 0, 0, Buffer.alloc(3))],
    "GOAWAY FRAME_SIZE_ERROR",
  ],
  [
    "WINDOW_UPDATE by nothing",
    [frame(FRAME.WINDOW_UPDATE, 0, 0, number(0))],
    "GOAWAY PROTOCOL_ERROR",
  ],
  [
    "WINDOW_UPDATE by nothing on a stream",
    [begun, frame(FRAME.WINDOW_UPDATE, 0, 1, number(0))],
    "RST_STREAM PROTOCOL_ERROR",
    "GOAWAY PROTOCOL_ERROR",
  ],
  [
    "WINDOW_UPDATE beyond 2^31 − 1",
    [frame(FRAME.WINDOW_UPDATE, 0, 0, number(2 ** 31 - 1))],
    "GOAWAY FLOW_CONTROL_ERROR",
  ],
  [
    "WINDOW_UPDATE beyond 2^31 − 1 on a stream",
    [begun, frame(FRAME.WINDOW_UPDATE, 0, 1, number(2 ** 31 - 1))],
    "RST_STREAM FLOW_CONTROL_ERROR",
    "GOAWAY FLOW_CONTROL_ERROR",
  ],
];
const greetings: readonly Row[] = [
  [
    "HTTP/1.1",
    [Buffer.from("GET / HTTP/1.1\r\nhost: here\r\n\r\n")],
    "GOAWAY PROTOCOL_ERROR",
    "GOAWAY INTERNAL_ERROR",
  ],
  ["a greeting without SETTINGS", [PREFACE, ...call(ORDER)], "GOAWAY PROTOCOL_ERROR"],
  [
    "a greeting that only acknowledges",
    [PREFACE, SETTINGS_ACK, ...call(ORDER)],
    "GOAWAY PROTOCOL_ERROR",
  ],
];

/** Each part of the table, and what stands before its bytes. */
export const MALFORMED: readonly (readonly [
  part: string,
  before: Uint8Array,
  rows: readonly Row[],
])[] = [
  ["Messages", GREETING, messages],
  ["Heads", GREETING, heads],
  ["Frames", GREETING, frames],
  ["Greetings", NOTHING, greetings],
];
