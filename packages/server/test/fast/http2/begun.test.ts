// What peers begin and do not end is counted, and whoever keeps the most of it ends when all together keep too much.
import { expect, test } from "vitest";
import { losersOf } from "../../../src/doors/greed.ts";
import { FLAG, FRAME } from "../../../src/fast/http2/frames.ts";
import { FIELD_BYTES, TABLE_BYTES } from "../../../src/fast/http2/hpack/decoder.ts";
import {
  BEGUN_OF_ALL,
  SMALL_TABLE_BYTES,
  USUALLY_BEGUN,
  WHOLE_TABLES,
} from "../../../src/fast/http2/limits.ts";
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
  TestConnection,
} from "../test-connection.ts";

const { END_HEADERS, END_STREAM } = FLAG;
const FRAME_HEADER = 9;
/** More than any connection keeps uncounted, so that every byte above it shows. */
const FULL = frame(
  FRAME.HEADERS,
  END_HEADERS | END_STREAM,
  1,
  keptBlock([
    ...requestFields("/none"),
    ...Array.from({ length: 40 }, (_, at) => [`name-${at}`, "value"] as const),
  ]),
);
/** The second half of a frame of so many bytes comes later, or never. */
const cut = (whole: Buffer, length: number): Buffer => whole.subarray(0, length);

/** A connection whose table takes more than what is not counted. */
function filled(): { it: TestConnection; table: number } {
  const it = begun();
  it.send(FULL);
  const table = it.held.begun;
  expect(table).toBeGreaterThan(0);
  return { it, table };
}

test("a table counts what its fields take, as they come, and no more than it may have", () => {
  const { it, table } = filled();
  it.send(frame(FRAME.HEADERS, END_HEADERS | END_STREAM, 3, keptBlock(requestFields("/more"))));
  const more = it.held.begun;
  expect(more).toBeGreaterThan(table);
  for (let id = 5; id < 205; id += 2) {
    const fields = requestFields("/none", [[`x-${id}`, "y".repeat(100)]]);
    it.send(frame(FRAME.HEADERS, END_HEADERS | END_STREAM, id, keptBlock(fields)));
  }
  // RFC 7541, 4.1 counts 32 bytes for each field, so there are fewer than that.
  const most = TABLE_BYTES + (TABLE_BYTES / 32) * FIELD_BYTES;
  expect(it.held.begun + USUALLY_BEGUN).toBeLessThanOrEqual(most);
  it.send(frame(FRAME.HEADERS, END_HEADERS | END_STREAM, 205, Buffer.from([0x20, 0x83, 0x86])));
  expect(it.held.begun).toBe(0);
  it.connection.closed();
  expect(it.held.begun).toBe(0);
});

test("a part of a frame counts as the memory that it takes, until the frame is whole", () => {
  const { it, table } = filled();
  const whole = frame(FRAME.PING, 0, 0, Buffer.alloc(8));
  it.send(cut(whole, 3));
  expect(it.held.begun - table).toBeGreaterThanOrEqual(3);
  it.send(whole.subarray(3));
  expect(it.held.begun).toBe(table);
  const large = frame(
    FRAME.HEADERS,
    END_HEADERS,
    3,
    block(requestFields("/none", [["a", "b".repeat(7_000)]])),
  );
  it.send(cut(large, 5_000));
  expect(it.held.begun - table).toBeGreaterThanOrEqual(5_000);
  expect(it.held.begun - table).toBeLessThanOrEqual(large.length);
  it.connection.closed();
  expect(it.held.begun).toBe(0);
});

test("a header block counts until it is whole", () => {
  const { it, table } = filled();
  const bytes = block(requestFields("/none", [["a", "b".repeat(3_000)]]));
  it.send(frame(FRAME.HEADERS, END_STREAM, 3, bytes.subarray(0, 2_000)));
  expect(it.held.begun - table).toBeGreaterThanOrEqual(2_000);
  it.send(frame(FRAME.CONTINUATION, 0, 3, bytes.subarray(2_000, 2_500)));
  expect(it.held.begun - table).toBeGreaterThanOrEqual(2_500);
  it.send(frame(FRAME.CONTINUATION, END_HEADERS, 3, bytes.subarray(2_500)));
  expect(it.held.begun).toBe(table);
});

test.each([
  ["the end of its connection", frame(FRAME.WINDOW_UPDATE, 0, 0, number(0))],
  ["a frame that may not come in it", frame(FRAME.PING, 0, 0, Buffer.alloc(8))],
])("nothing that was begun is counted behind %s", (_name, end) => {
  const { it } = filled();
  // More than is not counted: what is left of it would show.
  it.send(frame(FRAME.HEADERS, 0, 3, Buffer.alloc(2 * USUALLY_BEGUN)));
  it.send(end);
  expect(it.connection.isOver).toBe(true);
  expect(it.held.begun).toBe(0);
});

test("a connection with a usual table takes nothing from what all may begin", () => {
  const it = begun();
  it.send(
    frame(FRAME.HEADERS, END_HEADERS, 1, keptBlock(requestFields("/hold"))),
    data(1, NOTHING, END_STREAM),
  );
  expect(it.held.begun).toBe(0);
});

test("room is made when there is more than may be, and not before", () => {
  const it = begun();
  it.held.begun = BEGUN_OF_ALL - 1_000;
  it.send(cut(request(1, "/none", 0, [["a", "b".repeat(6_000)]]), USUALLY_BEGUN + 900));
  expect(it.rooms).toBe(0);
  it.held.begun = BEGUN_OF_ALL;
  it.send(Buffer.alloc(2_000, "b"));
  expect(it.rooms).toBeGreaterThan(0);
});

test("a peer is told of a small table, and may have it", () => {
  const it = new TestConnection({}, Infinity, SMALL_TABLE_BYTES);
  const [first] = it.sent();
  expect(first?.type).toBe(FRAME.SETTINGS);
  expect(first?.payload.subarray(0, 6)).toEqual(settings([1, SMALL_TABLE_BYTES]).subarray(9));
  it.send(HELLO);
  const resized = Buffer.concat([
    Buffer.from([0x3f, 0xe1, 0x07]),
    keptBlock(requestFields("/echo")),
  ]);
  it.send(frame(FRAME.HEADERS, END_HEADERS, 1, resized));
  expect(it.connection.isOver).toBe(false);
});

test("as many whole tables as there may be fit, whatever is in them", () => {
  const most = TABLE_BYTES + (TABLE_BYTES / 33) * FIELD_BYTES - USUALLY_BEGUN;
  expect(WHOLE_TABLES * most).toBeLessThan(BEGUN_OF_ALL);
});

test.each<[string, readonly [string, number][], number, readonly number[]]>([
  [
    "nobody, when there is room",
    [
      ["a", 5],
      ["b", 5],
    ],
    10,
    [],
  ],
  [
    "the one that keeps the most of a caller",
    [
      ["a", 3],
      ["a", 9],
      ["a", 5],
    ],
    9,
    [9],
  ],
  [
    "of the caller who keeps the most, not the largest of all",
    [
      ["a", 4],
      ["a", 4],
      ["a", 4],
      ["b", 9],
    ],
    18,
    [4],
  ],
  [
    "of callers in turn, when they keep as much",
    [
      ["a", 6],
      ["a", 6],
      ["b", 6],
      ["b", 6],
    ],
    13,
    [6, 6],
  ],
  [
    "nobody who keeps nothing",
    [
      ["a", 0],
      ["b", 0],
    ],
    0,
    [],
  ],
])("who has to go: %s", (_name, keepers, most, expected) => {
  const all = keepers.map(([caller, bytes]) => ({ caller, bytes }));
  const losers = losersOf(all, most, (its) => its.bytes);
  expect(losers.map((its) => its.bytes)).toEqual(expected);
  if (_name.startsWith("of callers"))
    expect(new Set(losers.map(({ caller }) => caller)).size).toBe(2);
});

test("a frame's head alone is counted as little", () => {
  const { it, table } = filled();
  it.send(cut(frame(FRAME.DATA, 0, 3, Buffer.alloc(16_384)), FRAME_HEADER));
  expect(it.held.begun - table).toBeLessThanOrEqual(512);
});
