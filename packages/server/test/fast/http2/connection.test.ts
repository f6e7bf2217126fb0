// HTTP/2's rules (RFC 9113), one by one: frames in, frames out.
import { expect, test } from "vitest";
import { FLAG, FRAME, PREFACE } from "../../../src/fast/http2/frames.ts";
import { indexed } from "../../../src/fast/http2/hpack/encode.ts";
import { STREAM_BYTES } from "../../../src/fast/http2/limits.ts";
import {
  begun,
  block,
  data,
  frame,
  HELLO,
  keptBlock,
  NOTHING,
  number,
  request,
  requestFields,
  settings,
  SETTINGS_ACK,
  TestConnection,
  told,
} from "../test-connection.ts";

const { END_HEADERS, END_STREAM, PADDED, PRIORITY, ACK } = FLAG;
const BODY = Buffer.from("hello");
const ANSWER = (id: number, length = BODY.length): string[] => [
  `HEADERS ${id}`,
  `DATA ${id} ${length}`,
  `HEADERS ${id} END`,
];
const call = (id: number, path = "/echo"): Buffer =>
  Buffer.concat([request(id, path), data(id, BODY, END_STREAM)]);
const echo = (id: number, length: number): Buffer =>
  Buffer.concat([request(id, "/echo"), data(id, Buffer.alloc(length), END_STREAM)]);
const reset = (id: number): Buffer => frame(FRAME.RST_STREAM, 0, id, number(8));
const window = (id: number, more: number): Buffer =>
  frame(FRAME.WINDOW_UPDATE, 0, id, number(more));
const cancelled = (id: number): Buffer => Buffer.concat([request(id, "/echo"), reset(id)]);
/** DATA of stream 1. */
const full = (length: number): Buffer => data(1, Buffer.alloc(length));
const withFields = (fields: readonly (readonly [string, string])[]): Buffer =>
  frame(FRAME.HEADERS, END_HEADERS | END_STREAM, 1, block(fields));
const changed = (name: string, value: string): Buffer =>
  withFields(requestFields("/echo").map(([known, old]) => [known, known === name ? value : old]));
const added = (name: string, value: string): Buffer =>
  withFields(requestFields("/echo", [[name, value]]));
const GOAWAY = (code: string, last = 0): string[] => [`GOAWAY ${last} ${code}`];
const RST = (code: string, id = 1): string[] => [`RST_STREAM ${id} ${code}`];
const [HEAD_FIRST, HEAD_REST] = [
  request(1, "/echo").subarray(9, 30),
  request(1, "/echo").subarray(30),
];

test("settings come first, and the preface is answered with an acknowledgement", () => {
  const it = new TestConnection();
  expect(it.sent().map(told)).toEqual(["SETTINGS", "WINDOW_UPDATE 0 983041"]);
  expect(it.send(PREFACE)).toEqual([]);
  expect(it.send(settings())).toEqual(["SETTINGS ACK"]);
});

test.each<[string, Buffer, string[]]>([
  ["another protocol", Buffer.from("GET / HTTP/1.1\r\n\r\n"), GOAWAY("PROTOCOL_ERROR")],
  ["another protocol, in few bytes", Buffer.from("PRI * HTTP/1"), GOAWAY("PROTOCOL_ERROR")],
  [
    "a first frame that is no SETTINGS",
    Buffer.concat([PREFACE, call(1)]),
    GOAWAY("PROTOCOL_ERROR"),
  ],
  [
    "an acknowledgement as first frame",
    Buffer.concat([PREFACE, SETTINGS_ACK]),
    GOAWAY("PROTOCOL_ERROR"),
  ],
])("%s ends the connection", (_name, bytes, answer) => {
  const it = new TestConnection();
  it.sent();
  expect(it.send(bytes)).toEqual(answer);
  expect(it.isEnded).toBe(true);
});

test.each<[string, readonly Buffer[], readonly string[]]>([
  ["a call", [call(1)], ANSWER(1)],
  ["a call without a body", [request(1, "/echo", END_STREAM)], ANSWER(1, 0)],
  [
    "padding",
    [request(1, "/echo"), data(1, Buffer.from([3, ...BODY, 0, 0, 0]), PADDED | END_STREAM)],
    ANSWER(1),
  ],
  [
    "padding that is all",
    [request(1, "/echo"), data(1, Buffer.from([4, 0, 0, 0, 0]), PADDED | END_STREAM)],
    ANSWER(1, 0),
  ],
  [
    "more padding than payload",
    [request(1, "/echo"), data(1, Buffer.from([5, 0, 0, 0, 0]), PADDED)],
    GOAWAY("PROTOCOL_ERROR", 1),
  ],
  [
    "padding of nothing",
    [request(1, "/echo"), data(1, NOTHING, PADDED)],
    GOAWAY("PROTOCOL_ERROR", 1),
  ],
  [
    "HEADERS with priority",
    [
      frame(
        FRAME.HEADERS,
        END_HEADERS | END_STREAM | PRIORITY,
        1,
        Buffer.concat([number(3), Buffer.from([9]), block(requestFields("/echo"))]),
      ),
    ],
    ANSWER(1, 0),
  ],
  [
    "a stream that depends on itself",
    [
      frame(
        FRAME.HEADERS,
        END_HEADERS | PRIORITY,
        1,
        Buffer.concat([number(1), Buffer.from([9]), block(requestFields("/echo"))]),
      ),
    ],
    RST("PROTOCOL_ERROR"),
  ],
  [
    "HEADERS too short for a priority",
    [frame(FRAME.HEADERS, END_HEADERS | PRIORITY, 1, NOTHING)],
    GOAWAY("FRAME_SIZE_ERROR"),
  ],
  [
    "CONTINUATION",
    [
      frame(FRAME.HEADERS, END_STREAM, 1, HEAD_FIRST),
      frame(FRAME.CONTINUATION, END_HEADERS, 1, HEAD_REST),
    ],
    ANSWER(1, 0),
  ],
  [
    "CONTINUATION of no block",
    [frame(FRAME.CONTINUATION, END_HEADERS, 1, HEAD_REST)],
    GOAWAY("PROTOCOL_ERROR"),
  ],
  [
    "another frame in a block",
    [frame(FRAME.HEADERS, 0, 1, HEAD_FIRST), frame(FRAME.PING, 0, 0, Buffer.alloc(8))],
    GOAWAY("PROTOCOL_ERROR"),
  ],
  [
    "another stream's CONTINUATION",
    [frame(FRAME.HEADERS, 0, 1, HEAD_FIRST), frame(FRAME.CONTINUATION, END_HEADERS, 3, HEAD_REST)],
    GOAWAY("PROTOCOL_ERROR"),
  ],
  [
    "a block of many frames",
    [
      frame(FRAME.HEADERS, 0, 1, HEAD_FIRST),
      ...Array.from({ length: 8 }, () => frame(FRAME.CONTINUATION, 0, 1, NOTHING)),
    ],
    GOAWAY("ENHANCE_YOUR_CALM"),
  ],
  [
    "a block of many bytes",
    [
      frame(FRAME.HEADERS, 0, 1, Buffer.alloc(16_000)),
      frame(FRAME.CONTINUATION, 0, 1, Buffer.alloc(1_000)),
    ],
    GOAWAY("ENHANCE_YOUR_CALM"),
  ],
  [
    "a block that cannot be decoded",
    [frame(FRAME.HEADERS, END_HEADERS, 1, Buffer.from([0x80]))],
    GOAWAY("COMPRESSION_ERROR", 1),
  ],
  ["HEADERS of an even stream", [request(2, "/echo")], GOAWAY("PROTOCOL_ERROR")],
  ["HEADERS of stream 0", [request(0, "/echo")], GOAWAY("PROTOCOL_ERROR")],
  [
    "HEADERS of a lower stream",
    [request(5, "/hold"), request(3, "/echo")],
    GOAWAY("STREAM_CLOSED", 5),
  ],
  [
    "a frame that is too large",
    [frame(99, 0, 0, Buffer.alloc(16_385))],
    GOAWAY("FRAME_SIZE_ERROR"),
  ],
  ["DATA of stream 0", [data(0, BODY)], GOAWAY("PROTOCOL_ERROR")],
  ["DATA of an idle stream", [data(1, BODY)], GOAWAY("PROTOCOL_ERROR")],
  ["DATA behind its end", [request(1, "/hold", END_STREAM), data(1, BODY)], RST("STREAM_CLOSED")],
  [
    "DATA of a stream that is closed",
    [call(1), data(1, BODY)],
    [...ANSWER(1), ...RST("STREAM_CLOSED")],
  ],
  [
    "HEADERS behind its end",
    [request(1, "/hold", END_STREAM), request(1, "/hold", END_STREAM)],
    GOAWAY("STREAM_CLOSED", 1),
  ],
  [
    "trailers",
    [
      request(1, "/echo"),
      data(1, BODY),
      frame(FRAME.HEADERS, END_HEADERS | END_STREAM, 1, block([["a", "b"]])),
    ],
    ANSWER(1),
  ],
  [
    "trailers that end nothing",
    [request(1, "/echo"), frame(FRAME.HEADERS, END_HEADERS, 1, block([["a", "b"]]))],
    RST("PROTOCOL_ERROR"),
  ],
  [
    "trailers with a pseudo-header",
    [
      request(1, "/echo"),
      frame(FRAME.HEADERS, END_HEADERS | END_STREAM, 1, block([[":path", "/"]])),
    ],
    RST("PROTOCOL_ERROR"),
  ],
  ["an early answer", [request(1, "/early")], ["HEADERS 1 END", ...RST("NO_ERROR")]],
  [
    "what was under way behind an early answer",
    [request(1, "/early"), data(1, BODY, END_STREAM)],
    ["HEADERS 1 END", ...RST("NO_ERROR")],
  ],
  [
    "trailers behind an early answer",
    [request(1, "/early"), frame(FRAME.HEADERS, END_HEADERS | END_STREAM, 1, block([["a", "b"]]))],
    ["HEADERS 1 END", ...RST("NO_ERROR")],
  ],
  [
    "a content-length that is right",
    [request(1, "/echo", 0, [["content-length", "5"]]), data(1, BODY, END_STREAM)],
    ANSWER(1),
  ],
  [
    "a content-length that is too small",
    [request(1, "/echo", 0, [["content-length", "4"]]), data(1, BODY)],
    RST("PROTOCOL_ERROR"),
  ],
  [
    "a content-length that is too large",
    [request(1, "/echo", 0, [["content-length", "6"]]), data(1, BODY, END_STREAM)],
    RST("PROTOCOL_ERROR"),
  ],
  [
    "a content-length without a body",
    [request(1, "/echo", END_STREAM, [["content-length", "6"]])],
    RST("PROTOCOL_ERROR"),
  ],
  [
    "a content-length with trailers",
    [
      request(1, "/echo", 0, [["content-length", "6"]]),
      data(1, BODY),
      frame(FRAME.HEADERS, END_HEADERS | END_STREAM, 1, NOTHING),
    ],
    RST("PROTOCOL_ERROR"),
  ],
  [
    "two lengths",
    [
      request(1, "/echo", 0, [
        ["content-length", "5"],
        ["content-length", "6"],
      ]),
    ],
    RST("PROTOCOL_ERROR"),
  ],
  ["a length that is none", [added("content-length", "+5")], RST("PROTOCOL_ERROR")],
  ["RST_STREAM of an idle stream", [reset(1)], GOAWAY("PROTOCOL_ERROR")],
  ["RST_STREAM of stream 0", [reset(0)], GOAWAY("PROTOCOL_ERROR")],
  [
    "RST_STREAM of another size",
    [request(1, "/hold"), frame(FRAME.RST_STREAM, 0, 1, Buffer.alloc(3))],
    GOAWAY("FRAME_SIZE_ERROR", 1),
  ],
  ["DATA behind RST_STREAM", [request(1, "/echo"), reset(1), data(1, BODY)], RST("STREAM_CLOSED")],
  [
    "HEADERS behind RST_STREAM",
    [request(1, "/echo"), reset(1), request(1, "/echo")],
    GOAWAY("STREAM_CLOSED", 1),
  ],
  ["SETTINGS on a stream", [frame(FRAME.SETTINGS, 0, 1, NOTHING)], GOAWAY("PROTOCOL_ERROR")],
  [
    "SETTINGS of another size",
    [frame(FRAME.SETTINGS, 0, 0, Buffer.alloc(5))],
    GOAWAY("FRAME_SIZE_ERROR"),
  ],
  [
    "an acknowledgement with settings",
    [frame(FRAME.SETTINGS, ACK, 0, Buffer.alloc(6))],
    GOAWAY("FRAME_SIZE_ERROR"),
  ],
  ["ENABLE_PUSH beyond 1", [settings([2, 2])], GOAWAY("PROTOCOL_ERROR")],
  ["a window above the largest", [settings([4, 2 ** 31])], GOAWAY("FLOW_CONTROL_ERROR")],
  ["a frame size below the least", [settings([5, 16_383])], GOAWAY("PROTOCOL_ERROR")],
  ["a frame size above the largest", [settings([5, 2 ** 24])], GOAWAY("PROTOCOL_ERROR")],
  ["an unknown setting", [settings([99, 5])], ["SETTINGS ACK"]],
  [
    "settings without end",
    [settings(...Array.from({ length: 33 }, () => [99, 1] as const))],
    GOAWAY("ENHANCE_YOUR_CALM"),
  ],
  ["PING", [frame(FRAME.PING, 0, 0, Buffer.from("12345678"))], ["PING ACK"]],
  ["an answer to no PING", [frame(FRAME.PING, ACK, 0, Buffer.from("12345678"))], []],
  ["PING on a stream", [frame(FRAME.PING, 0, 1, Buffer.alloc(8))], GOAWAY("PROTOCOL_ERROR")],
  ["PING of another size", [frame(FRAME.PING, 0, 0, Buffer.alloc(7))], GOAWAY("FRAME_SIZE_ERROR")],
  ["GOAWAY", [frame(FRAME.GOAWAY, 0, 0, Buffer.alloc(8)), call(1)], ANSWER(1)],
  ["GOAWAY on a stream", [frame(FRAME.GOAWAY, 0, 1, Buffer.alloc(8))], GOAWAY("PROTOCOL_ERROR")],
  ["GOAWAY too short", [frame(FRAME.GOAWAY, 0, 0, Buffer.alloc(7))], GOAWAY("FRAME_SIZE_ERROR")],
  [
    "PUSH_PROMISE",
    [frame(FRAME.PUSH_PROMISE, END_HEADERS, 1, Buffer.alloc(4))],
    GOAWAY("PROTOCOL_ERROR"),
  ],
  ["an unknown frame", [frame(99, 255, 7, BODY), call(1)], ANSWER(1)],
  [
    "PRIORITY of an idle stream",
    [frame(FRAME.PRIORITY, 0, 7, Buffer.alloc(5)), call(1)],
    ANSWER(1),
  ],
  [
    "PRIORITY of stream 0",
    [frame(FRAME.PRIORITY, 0, 0, Buffer.alloc(5))],
    GOAWAY("PROTOCOL_ERROR"),
  ],
  [
    "PRIORITY of another size",
    [request(1, "/hold"), frame(FRAME.PRIORITY, 0, 1, Buffer.alloc(4))],
    RST("FRAME_SIZE_ERROR"),
  ],
  [
    "PRIORITY of another size, idle",
    [frame(FRAME.PRIORITY, 0, 1, Buffer.alloc(4))],
    GOAWAY("FRAME_SIZE_ERROR"),
  ],
  [
    "PRIORITY on itself",
    [request(1, "/hold"), frame(FRAME.PRIORITY, 0, 1, Buffer.from([0, 0, 0, 1, 9]))],
    RST("PROTOCOL_ERROR"),
  ],
  [
    "the reserved bit of a stream's number",
    [request(0x80000001, "/echo"), data(0x80000001, BODY, END_STREAM)],
    ANSWER(1),
  ],
  ["the reserved bit of a window's size", [window(0, 0x80000001), call(1)], ANSWER(1)],
  ["WINDOW_UPDATE by nothing", [window(0, 0)], GOAWAY("PROTOCOL_ERROR")],
  [
    "WINDOW_UPDATE by nothing, on a stream",
    [request(1, "/hold"), window(1, 0)],
    RST("PROTOCOL_ERROR"),
  ],
  [
    "WINDOW_UPDATE of another size",
    [frame(FRAME.WINDOW_UPDATE, 0, 0, Buffer.alloc(3))],
    GOAWAY("FRAME_SIZE_ERROR"),
  ],
  ["WINDOW_UPDATE of an idle stream", [window(1, 1)], GOAWAY("PROTOCOL_ERROR")],
  ["WINDOW_UPDATE of a closed stream", [call(1), window(1, 1)], ANSWER(1)],
  ["a window too large", [window(0, 2 ** 31 - 1)], GOAWAY("FLOW_CONTROL_ERROR")],
  [
    "a window too large, on a stream",
    [request(1, "/hold"), window(1, 2 ** 31 - 1)],
    RST("FLOW_CONTROL_ERROR"),
  ],
  [
    "a window too large, by SETTINGS",
    [request(1, "/hold"), window(1, 2 ** 31 - 1 - 65_535), settings([4, 65_536])],
    GOAWAY("FLOW_CONTROL_ERROR", 1),
  ],
  [
    "no method",
    [withFields(requestFields("/echo").filter(([name]) => name !== ":method"))],
    RST("PROTOCOL_ERROR"),
  ],
  [
    "no scheme",
    [withFields(requestFields("/echo").filter(([name]) => name !== ":scheme"))],
    RST("PROTOCOL_ERROR"),
  ],
  [
    "no path",
    [withFields(requestFields("/echo").filter(([name]) => name !== ":path"))],
    RST("PROTOCOL_ERROR"),
  ],
  [
    "no authority",
    [withFields(requestFields("/echo").filter(([name]) => name !== ":authority"))],
    ANSWER(1, 0),
  ],
  ["an empty path", [changed(":path", "")], RST("PROTOCOL_ERROR")],
  [
    "a pseudo-header twice",
    [withFields([[":path", "/echo"], ...requestFields("/echo")])],
    RST("PROTOCOL_ERROR"),
  ],
  [
    "a pseudo-header behind a field",
    [withFields([["a", "b"], ...requestFields("/echo")])],
    RST("PROTOCOL_ERROR"),
  ],
  [
    "a pseudo-header of answers",
    [withFields([[":status", "200"], ...requestFields("/echo")])],
    RST("PROTOCOL_ERROR"),
  ],
  ["a name in capitals", [added("Name", "value")], RST("PROTOCOL_ERROR")],
  ["a name that is empty", [added("", "value")], RST("PROTOCOL_ERROR")],
  ["a value with a line's end", [added("name", "a\r\nb: c")], RST("PROTOCOL_ERROR")],
  ["a value with NUL", [added("name", "a\0b")], RST("PROTOCOL_ERROR")],
  ["a value with blanks at its end", [added("name", "a ")], RST("PROTOCOL_ERROR")],
  ["a field of connections", [added("connection", "close")], RST("PROTOCOL_ERROR")],
  ["transfer-encoding", [added("transfer-encoding", "chunked")], RST("PROTOCOL_ERROR")],
  ["te other than trailers", [changed("te", "gzip")], RST("PROTOCOL_ERROR")],
])("%s", (_name, frames, answer) => {
  const it = begun();
  expect(it.send(...frames)).toEqual(answer);
  expect(it.failures).toEqual([]);
  expect(it.isEnded).toBe(answer.some((told) => told.startsWith("GOAWAY")));
});

test("a malformed block still enters the table, and so does that of a refused stream", () => {
  const it = begun({ streams: 1 });
  const entry = keptBlock([["x", "/echo"]]);
  it.send(frame(FRAME.HEADERS, END_HEADERS, 1, entry));
  const path = [0x44, 0x05, ...Buffer.from("/echo")];
  const fields = Buffer.from([...indexed(3), ...indexed(6), ...path]);
  expect(it.send(request(3, "/hold"))).toEqual([]);
  expect(it.send(frame(FRAME.HEADERS, END_HEADERS | END_STREAM, 5, fields))).toEqual(
    RST("REFUSED_STREAM", 5),
  );
  it.send(reset(3));
  for (const held of it.calls) held.ended();
  const named = Buffer.from([...indexed(3), ...indexed(6), ...indexed(62)]);
  expect(it.send(frame(FRAME.HEADERS, END_HEADERS | END_STREAM, 7, named))).toEqual(ANSWER(7, 0));
});

/** What each of these bytes is answered with must not depend on where its chunks end. */
test("chunks may end anywhere", () => {
  const bytes = Buffer.concat([
    HELLO,
    request(1, "/echo"),
    data(1, BODY),
    frame(FRAME.PING, 0, 0, Buffer.from("12345678")),
    frame(FRAME.HEADERS, 0, 3, HEAD_FIRST),
    frame(FRAME.CONTINUATION, END_HEADERS, 3, HEAD_REST),
    data(1, BODY, END_STREAM),
    data(3, Buffer.from([2, ...BODY, 0, 0]), PADDED | END_STREAM),
    settings([4, 10]),
    call(5),
    window(0, 0),
  ]);
  const whole = new TestConnection();
  const wanted = whole.send(bytes);
  expect(wanted.at(-1)).toBe("GOAWAY 5 PROTOCOL_ERROR");
  for (let at = 1; at < bytes.length; at++) {
    const it = new TestConnection();
    it.connection.receive(Buffer.from(bytes.subarray(0, at)));
    it.connection.receive(Buffer.from(bytes.subarray(at)));
    expect(it.sent().map(told), `cut at ${at}`).toEqual(wanted);
  }
  const one = new TestConnection();
  // The memory of a chunk is used again, as that of sockets may be.
  const chunk = Buffer.alloc(1);
  for (const byte of bytes) {
    chunk[0] = byte;
    one.connection.receive(chunk);
  }
  expect(one.sent().map(told)).toEqual(wanted);
});

test("an answer waits for its windows, and its end behind it", () => {
  const it = begun();
  it.send(settings([4, 3]));
  expect(it.send(call(1))).toEqual(["HEADERS 1", "DATA 1 3"]);
  expect(it.send(window(1, 1))).toEqual(["DATA 1 1"]);
  // Below 0: what came too late.
  expect(it.send(settings([4, 1]))).toEqual(["SETTINGS ACK"]);
  expect(it.send(window(1, 2))).toEqual([]);
  expect(it.held.bytes).toBe(1 + STREAM_BYTES);
  expect(it.send(window(1, 1))).toEqual(["DATA 1 1", "HEADERS 1 END"]);
  expect(it.held.bytes).toBe(0);
  expect(it.connection.slots).toBe(0);
});

test("answers share the connection's window in turns, in frames of the least size that all peers take", () => {
  const it = begun();
  it.send(settings([4, 1_000_000]));
  const body = Buffer.alloc(50);
  const big = (id: number): Buffer =>
    Buffer.concat([request(id, "/big"), data(id, body, END_STREAM)]);
  expect(it.send(big(1), big(3), big(5))).toEqual([
    "HEADERS 1",
    "DATA 1 16384",
    "DATA 1 16384",
    "DATA 1 16384",
    "DATA 1 848",
    "HEADERS 1 END",
    "HEADERS 3",
    "DATA 3 15535",
    "HEADERS 5",
  ]);
  expect(it.send(window(0, 20_000))).toEqual(["DATA 3 16384", "DATA 5 3616"]);
  expect(it.send(window(0, 20_000))).toEqual(["DATA 3 16384", "DATA 5 3616"]);
  const sent = it.send(window(0, 100_000));
  expect(sent.filter((frame) => frame.endsWith("END"))).toEqual(["HEADERS 3 END", "HEADERS 5 END"]);
  expect(it.held.bytes).toBe(0);
});

test("what is sent at once is no more than the connection's window", () => {
  const it = begun();
  it.send(settings([4, 1_000_000]));
  const many = [1, 3, 5, 7].map((id) => echo(id, 16_375));
  expect(it.send(...many)).toEqual([1, 3, 5, 7].flatMap((id) => ANSWER(id, 16_375)));
  // 65,535 − 4 · 16,375 are left: a message of 30 bytes and its prefix.
  it.send(request(9, "/hold"));
  const [{ stream } = { stream: undefined }] = it.calls;
  if (stream === undefined) throw new Error("there is no call");
  const { sender } = it.connection;
  expect([30, 31].map((length) => sender.takes(stream, length))).toEqual([true, false]);
  expect(it.send(echo(11, 36))).toEqual(["HEADERS 11", "DATA 11 35"]);
  expect([0, 1].map((length) => sender.takes(stream, length))).toEqual([false, false]);
  expect(it.send(window(0, 1))).toEqual(["DATA 11 1", "HEADERS 11 END"]);
});

test("an end that waited names the table as it is then", () => {
  const it = begun();
  it.send(settings([4, 0]));
  // The head of the first answer enters the peer's table; its end would have entered it next.
  it.connection.receive(call(1));
  const [head] = it.sent();
  expect(head?.payload.toString("latin1")).toContain("application/grpc");
  it.connection.receive(Buffer.concat([settings([4, 65_535])]));
  const first = it.sent().at(-1);
  expect(first?.payload.toString("latin1")).toContain("grpc-status");
  it.send(settings([4, 0]));
  it.connection.receive(call(3));
  it.sent();
  // The table is given up meanwhile: the end must say so, and name nothing of it.
  it.connection.receive(Buffer.concat([settings([1, 0], [4, 65_535])]));
  const last = it.sent().at(-1);
  expect(last?.payload[0]).toBe(0x20);
  expect(last?.payload.toString("latin1")).toContain("grpc-status");
});

test("the connection's window is given back when half of it came, whatever became of that", () => {
  const it = begun();
  it.send(request(1, "/early"));
  const sent = it.send(...Array.from({ length: 32 }, () => full(16_384)));
  expect(sent).toEqual(["WINDOW_UPDATE 0 524288"]);
});

test("a stream's window holds, and is given back when half of it came", () => {
  const it = begun();
  expect(it.send(request(1, "/hold"), full(16_384), full(16_383))).toEqual([]);
  expect(it.send(full(1))).toEqual(["WINDOW_UPDATE 1 32768"]);
  const [held] = it.calls;
  if (held === undefined) throw new Error("there is no call");
  held.stream.isPaused = true;
  const rest = [full(16_384), full(16_384), full(16_384), full(16_383)];
  expect(it.send(...rest)).toEqual([]);
  it.connection.requests.resume(held.stream);
  expect(it.sent().map(told)).toEqual(["WINDOW_UPDATE 1 65535"]);
  held.stream.isPaused = true;
  expect(it.send(...rest, full(1))).toEqual(RST("FLOW_CONTROL_ERROR"));
});

test("streams beyond the limit are refused, and a reset frees none whose handler works", () => {
  const it = begun({ streams: 2 });
  expect(it.send(request(1, "/hold", END_STREAM), request(3, "/hold", END_STREAM))).toEqual([]);
  expect(it.send(request(5, "/echo", END_STREAM))).toEqual(RST("REFUSED_STREAM", 5));
  expect(it.send(reset(1), reset(3), request(7, "/echo", END_STREAM))).toEqual(
    RST("REFUSED_STREAM", 7),
  );
  expect(it.connection.slots).toBe(2);
  for (const held of it.calls) held.ended();
  expect(it.connection.slots).toBe(0);
  expect(it.send(request(9, "/echo", END_STREAM))).toEqual(ANSWER(9, 0));
});

test("resets are counted, the peer's and ours", () => {
  const limits = { resetBurst: 10, resetPerSecond: 10 };
  const theirs = begun(limits);
  const ids = Array.from({ length: 12 }, (_, at) => 2 * at + 1);
  expect(theirs.send(...ids.slice(0, 10).map(cancelled))).toEqual([]);
  expect(theirs.send(cancelled(21))).toEqual(GOAWAY("ENHANCE_YOUR_CALM", 21));
  const ours = begun(limits);
  const sent = ours.send(...ids.map((id) => Buffer.concat([request(id, "/hold"), window(id, 0)])));
  expect(sent.at(-1)).toBe("GOAWAY 21 ENHANCE_YOUR_CALM");
  // Early answers are answers.
  const early = begun(limits);
  expect(early.send(...ids.map((id) => request(id, "/early"))).at(-1)).toBe(
    "RST_STREAM 23 NO_ERROR",
  );
  // And time takes them away.
  const slow = begun(limits);
  for (const id of ids) {
    slow.now += 200;
    expect(slow.send(cancelled(id))).toEqual([]);
  }
});

test("who does much for nothing is not read for a while", () => {
  const it = begun();
  const many = Array.from({ length: 1_124 }, (_, at) => cancelled(2 * at + 1));
  it.send(...many.slice(0, 1_000));
  expect(it.connection.waitMs).toBe(0);
  it.send(...many.slice(1_000));
  expect(it.connection.waitMs).toBe(100);
  it.now += 100;
  expect(it.connection.waitMs).toBe(0);
});

test.each<[string, Buffer]>([
  ["PING", frame(FRAME.PING, 0, 0, Buffer.alloc(8))],
  ["an answered PING", frame(FRAME.PING, ACK, 0, Buffer.alloc(8))],
  ["SETTINGS", settings()],
  ["acknowledgements", SETTINGS_ACK],
  ["PRIORITY", frame(FRAME.PRIORITY, 0, 1, Buffer.alloc(5))],
  ["unknown frames", frame(99, 0, 0, NOTHING)],
  ["GOAWAY", frame(FRAME.GOAWAY, 0, 0, Buffer.alloc(8))],
  ["empty DATA", data(1, NOTHING)],
  ["late DATA", data(3, BODY)],
  ["WINDOW_UPDATE of a closed stream", window(3, 1)],
])("%s without end are too much", (_name, one) => {
  const it = begun({ nuisanceBurst: 50, nuisancePerSecond: 10 });
  it.send(request(1, "/hold"), request(3, "/early"));
  const sent = it.send(...Array.from({ length: 60 }, () => one));
  expect(sent.at(-1)).toBe("GOAWAY 3 ENHANCE_YOUR_CALM");
});

test("crumbs are counted when they go on, and not those of messages in few parts", () => {
  const it = begun({ nuisanceBurst: 10, nuisancePerSecond: 1 });
  for (let id = 1; id < 200; id += 2) {
    const parts = [data(id, NOTHING), data(id, NOTHING), data(id, BODY, END_STREAM)];
    expect(it.send(request(id, "/echo"), ...parts)).toEqual(ANSWER(id));
  }
});

test("windows that open byte by byte are too much", () => {
  const it = begun({ nuisanceBurst: 10, nuisancePerSecond: 1 });
  it.send(settings([4, 0]), request(1, "/big"), data(1, BODY, END_STREAM));
  const sent = it.send(...Array.from({ length: 20 }, () => window(1, 1)));
  expect(sent.at(-1)).toBe("GOAWAY 1 ENHANCE_YOUR_CALM");
});

test("a connection leaves when its calls are over: the last stream is named when the peer knows", () => {
  const it = begun();
  it.send(request(1, "/hold", END_STREAM));
  it.connection.leave();
  const [goAway, ping] = it.sent();
  if (goAway === undefined || ping === undefined) throw new Error("nothing was sent");
  expect([goAway, ping].map(told)).toEqual(["GOAWAY 2147483647 NO_ERROR", "PING"]);
  // It was under way.
  expect(it.send(call(3))).toEqual(ANSWER(3));
  expect(it.send(frame(FRAME.PING, ACK, 0, ping.payload))).toEqual(["GOAWAY 3 NO_ERROR"]);
  // These were sent too late: they are left unanswered, but decoded.
  expect(it.send(call(5), reset(5), window(5, 1))).toEqual([]);
  expect(it.isEnded).toBe(false);
  for (const held of it.calls) held.ended();
  expect(it.sent().map(told)).toEqual(ANSWER(1, 0));
  expect(it.isEnded).toBe(true);
});

test("slabs are full when the socket takes nothing, and what waits is counted", () => {
  const it = begun();
  it.takes = false;
  for (let id = 1; id < 4_000; id += 2) {
    it.connection.receive(call(id));
    it.sent();
  }
  const { queued } = it;
  expect(queued).toBeGreaterThan(60_000);
  // Whole slabs of 32 KiB, and the first, which went at once.
  expect(it.writes).toBeLessThanOrEqual(Math.ceil(queued / (32 * 1_024)) + 2);
  it.takes = true;
  it.take();
  it.sent();
  expect(it.queued).toBe(0);
  expect(it.held.bytes).toBe(0);
});
