// What connections keep is counted, and what each of them may keep when all together keep too much.
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import type { CallsPorts } from "../../src/fast/calls/call.ts";
import { FastConnection, type Shared } from "../../src/fast/fast-connection.ts";
import { FLAG, FRAME } from "../../src/fast/http2/frames.ts";
import { AwakeTime } from "../../src/fast/http2/lifetime.ts";
import { HELD_OF_ALL, KEPT_OF_ALL, LITTLE, STREAM_BYTES } from "../../src/fast/http2/limits.ts";
import { SLAB_BYTES } from "../../src/fast/http2/out.ts";
import { NOTHING_SHOWN } from "../../src/tls/names.ts";
import {
  begun,
  block,
  data,
  frame,
  framesOf,
  HELLO,
  NOTHING,
  number,
  request,
  requestFields,
  settings,
  told,
} from "./test-connection.ts";

const { END_HEADERS, END_STREAM } = FLAG;
const PING = frame(FRAME.PING, 0, 0, Buffer.alloc(8));
const BODY = Buffer.from("hello");
const times = (count: number, of: (at: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, at) => of(at)));

/** A head as RFC 7541 counts it. */
const HEAD = requestFields("/hold").reduce(
  (sum, [name, value]) => sum + name.length + value.length + 32,
  0,
);

test.each<[string, Buffer]>([
  ["its end", data(1, BODY, END_STREAM)],
  ["trailers", frame(FRAME.HEADERS, END_HEADERS | END_STREAM, 1, block([["a", "b"]]))],
  ["its peer's reset", frame(FRAME.RST_STREAM, 0, 1, number(8))],
  ["our reset", frame(FRAME.WINDOW_UPDATE, 0, 1, number(0))],
  ["the end of its connection", frame(FRAME.WINDOW_UPDATE, 0, 0, number(0))],
])("a request that is not whole is counted, with its head, until %s", (_name, end) => {
  const it = begun();
  it.send(request(1, "/hold"), data(1, BODY));
  expect(it.held.bytes).toBe(HEAD + STREAM_BYTES);
  it.send(end);
  expect(it.held.bytes).toBe(0);
  it.connection.closed();
  expect(it.held.bytes).toBe(0);
});

test("a request without a body is counted by its handler only", () => {
  const it = begun();
  it.send(request(1, "/hold", END_STREAM));
  expect(it.held.bytes).toBe(0);
});

test("an answer that waits counts as a stream, besides its bytes", () => {
  const it = begun();
  it.send(settings([4, 0]));
  const calls = times(3, (at) =>
    Buffer.concat([request(2 * at + 1, "/echo"), data(2 * at + 1, BODY, END_STREAM)]),
  );
  it.send(calls);
  expect(it.held.bytes).toBe(3 * (BODY.length + STREAM_BYTES));
  it.send(frame(FRAME.WINDOW_UPDATE, 0, 1, number(3)));
  expect(it.held.bytes).toBe(3 * (BODY.length + STREAM_BYTES) - 3);
  it.send(frame(FRAME.WINDOW_UPDATE, 0, 1, number(2)));
  expect(it.held.bytes).toBe(2 * (BODY.length + STREAM_BYTES));
  it.send(frame(FRAME.RST_STREAM, 0, 3, number(8)));
  expect(it.held.bytes).toBe(BODY.length + STREAM_BYTES);
  it.connection.closed();
  expect(it.held.bytes).toBe(0);
});

test("whoever does not read keeps the memory of two answers, however short they are", () => {
  const it = begun();
  it.takes = false;
  it.send(PING);
  expect(it.held.bytes).toBe(SLAB_BYTES);
  it.send(PING);
  it.send(PING);
  expect([it.held.bytes, it.queued]).toEqual([2 * SLAB_BYTES, 3 * PING.length]);
  // It takes nothing from what the connection itself may keep.
  expect(it.isTooMuch).toBe(false);
  it.take();
  expect(it.held.bytes).toBe(SLAB_BYTES);
  it.take();
  expect(it.held.bytes).toBe(0);
});

test("room is made when more is kept than may be, and not for what is on its way", () => {
  const it = begun();
  it.held.kept = KEPT_OF_ALL - 100 - STREAM_BYTES;
  it.held.bytes = KEPT_OF_ALL;
  it.send(PING);
  expect(it.rooms).toBe(0);
  it.send(request(1, "/hold"));
  expect(it.rooms).toBeGreaterThan(0);
});

test("a stream that waits for its next use keeps nothing of its last request", () => {
  const it = begun();
  it.send(request(1, "/hold", 0, [["authorization", "x".repeat(5_000)]]));
  const [call] = it.calls;
  expect(call?.stream.head.authorization).toHaveLength(5_000);
  call?.ended();
  it.send(frame(FRAME.RST_STREAM, 0, 1, number(8)));
  expect(it.connection.slots).toBe(0);
  expect(call?.stream.head).toMatchObject({ authorization: undefined, path: "" });
});

/** A socket whose peer takes nothing, unless it is told. */
class Wire extends Duplex {
  #takes = false;
  #waiting: (() => void) | undefined;
  readonly sent: Buffer[] = [];

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.sent.push(Buffer.from(chunk));
    if (this.#takes) done();
    else this.#waiting = done;
  }

  set takes(takes: boolean) {
    this.#takes = takes;
    if (takes) this.takeOne();
  }

  /** Takes what was written last, and no more. */
  takeOne(): void {
    const done = this.#waiting;
    this.#waiting = undefined;
    done?.();
  }

  /** As a socket that is closed: what it was writing is over. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#waiting?.();
    done(error);
  }

  override _read(): void {
    // What the test pushes is there.
  }

  setNoDelay(): void {
    // It has none.
  }

  get told(): string[] {
    return framesOf(Buffer.concat(this.sent)).map(told);
  }
}

function connection(
  heldOfAll: number,
  waiting = 0,
): {
  readonly its: FastConnection;
  readonly wire: Wire;
  readonly shared: Shared;
  readonly refused: unknown[];
} {
  const wire = new Wire();
  const refused: unknown[] = [];
  const shared = {
    held: { bytes: heldOfAll, kept: 0, begun: 0, makeRoom: () => undefined },
    turn: { waiting },
  };
  // None of its requests is one of gRPC, so nothing else is asked of it.
  const ports = { emit: (event) => refused.push(event) } as Pick<CallsPorts, "emit"> as CallsPorts;
  const its = new FastConnection(wire as unknown as Socket, NOTHING_SHOWN, new Map(), ports, {
    maxAgeMs: Infinity,
    awake: new AwakeTime(0, 0),
    shared,
  });
  return { its, wire, shared, refused };
}

/** Fulfils when whatever is to be read at once was. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 40; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test.each([
  ["memory is short", HELD_OF_ALL, true],
  ["there is memory", 0, false],
])("who takes no answers is ended after a second when %s", async (_name, heldOfAll, isEnded) => {
  const { its, wire, shared, refused } = connection(heldOfAll);
  wire.push(Buffer.concat([HELLO, times(2_000, (at) => request(2 * at + 1, "/none", END_STREAM))]));
  await turns();
  its.look();
  its.look();
  its.look();
  expect(its.isClosed).toBe(false);
  its.look();
  its.look();
  await turns();
  expect(its.isClosed).toBe(isEnded);
  expect(wire.destroyed).toBe(isEnded);
  expect(refused).toEqual(
    isEnded ? [expect.objectContaining({ why: "memory is short, and it takes no answers" })] : [],
  );
  wire.destroy();
  await turns();
  expect(shared.held.bytes).toBe(heldOfAll);
});

test("who takes no answers is ended when memory is short, however short they are", async () => {
  const { its, wire } = connection(HELD_OF_ALL);
  wire.push(Buffer.concat([HELLO, PING]));
  for (let look = 1; look <= 3; look++) its.look();
  await turns();
  expect(its.isClosed).toBe(false);
  its.look();
  its.look();
  await turns();
  expect(wire.destroyed).toBe(true);
});

test("who takes answers slowly goes on, though memory is short", async () => {
  const { its, wire } = connection(HELD_OF_ALL);
  wire.push(Buffer.concat([HELLO, times(2_000, (at) => request(2 * at + 1, "/none", END_STREAM))]));
  for (let look = 1; look <= 9; look++) {
    await turns();
    // Most looks find that nothing was taken, but never as many in a row as are too many.
    if (look % 3 === 0) wire.takeOne();
    its.look();
    expect(its.isClosed, `look ${look}`).toBe(false);
  }
  wire.destroy();
});

test.each([
  ["memory is short", HELD_OF_ALL, true],
  ["there is memory", 0, false],
])("who does too much for nothing is ended at once when %s", async (_name, heldOfAll, isEnded) => {
  const { its, wire, shared, refused } = connection(heldOfAll);
  wire.takes = true;
  // More than a slice, so that some of it waits; and more than is calm.
  wire.push(Buffer.concat([HELLO, times(3_000, () => PING)]));
  await turns();
  expect(shared.held.bytes).toBeGreaterThan(heldOfAll);
  its.look();
  expect(its.isClosed).toBe(isEnded);
  await turns();
  expect(wire.told.at(-1)).toBe(isEnded ? "GOAWAY 0 ENHANCE_YOUR_CALM" : "PING ACK");
  expect(refused).toHaveLength(isEnded ? 1 : 0);
  wire.destroy();
  await turns();
  expect(shared.held.bytes).toBe(heldOfAll);
});

test.each([
  [0, 16 * 1_024],
  [8, 16 * 1_024],
  [64, 2 * 1_024],
  [10_000, 1_024],
])("with %i others in a turn a connection has %i bytes of it", async (waiting, slice) => {
  const { wire, shared } = connection(0, waiting);
  wire.takes = true;
  wire.push(HELLO);
  await turns();
  const before = wire.told.length;
  const bytes = times(1_000, () => PING);
  const first = new Promise<number>((resolve) => {
    wire.once("data", () => resolve(wire.told.length - before));
  });
  wire.push(bytes);
  expect(await first).toBe(Math.floor(slice / PING.length));
  expect(shared.turn.waiting).toBe(waiting + 1);
  await turns();
  expect(shared.turn.waiting).toBe(waiting);
  wire.destroy();
});

test("when memory is short each connection has a little of it", () => {
  const it = begun();
  it.held.bytes = HELD_OF_ALL;
  it.send(request(1, "/hold", 0, [["authorization", "x".repeat(LITTLE / 4)]]));
  expect(it.isTooMuch).toBe(false);
  for (let id = 3; id < 9; id += 2)
    it.send(request(id, "/hold", 0, [["authorization", "x".repeat(LITTLE / 4)]]));
  expect(it.isTooMuch).toBe(true);
  it.held.bytes -= HELD_OF_ALL;
  expect(it.isTooMuch).toBe(false);
  expect(it.send(data(1, NOTHING))).toEqual([]);
});
