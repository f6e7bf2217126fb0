// Whatever a peer sends, in whatever order, whole or broken: it is answered by frames, slots are right, and memory has a bound.
import fc from "fast-check";
import { expect, test } from "vitest";
import { FLAG, FRAME } from "../../../src/fast/http2/frames.ts";
import {
  begun,
  data,
  frame,
  number,
  request,
  settings,
  type TestConnection,
} from "../test-connection.ts";

const LIMITS = { streams: 8, nuisanceBurst: 200, resetBurst: 50 };
const isLong = process.env["IDMINT_LONG"] === "1";

/** Makes a frame; `last` is the last stream that was begun. */
type Make = (last: number) => Buffer;

const path = fc.constantFrom("/echo", "/hold", "/early", "/big");
const bytes = fc.uint8Array({ maxLength: 40 }).map((some) => Buffer.from(some));
const flags = fc.constantFrom(0, FLAG.END_STREAM, FLAG.END_HEADERS, FLAG.PADDED, 0x2d, 0xff);
/** One of the streams that were begun last. */
const back = fc.integer({ min: 0, max: 6 });
const recent = (last: number, at: number): number => Math.max(1, last - 2 * at);
const isLast = fc.constantFrom(0, FLAG.END_STREAM);

/** Frames that a client may send, in most states. */
const right: fc.Arbitrary<Make> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.tuple(path, isLast).map(
      ([to, end]): Make =>
        (last) =>
          request(last + 2, to, end),
    ),
  },
  {
    weight: 5,
    arbitrary: fc.tuple(back, bytes, isLast).map(
      ([at, some, end]): Make =>
        (last) =>
          data(recent(last, at), some, end),
    ),
  },
  {
    weight: 1,
    arbitrary: back.map(
      (at): Make =>
        (last) =>
          frame(FRAME.RST_STREAM, 0, recent(last, at), number(8)),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(back, fc.integer({ min: 1, max: 70_000 })).map(
      ([at, more]): Make =>
        (last) =>
          frame(FRAME.WINDOW_UPDATE, 0, at === 0 ? 0 : recent(last, at), number(more)),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(0, 10, 65_535).map(
      (size): Make =>
        () =>
          settings([4, size], [1, size]),
    ),
  },
  { weight: 1, arbitrary: fc.constant<Make>(() => frame(FRAME.PING, 0, 0, Buffer.alloc(8))) },
);
const wrong: fc.Arbitrary<Make> = fc.tuple(fc.integer({ min: 0, max: 11 }), flags, back, bytes).map(
  ([type, some, at, payload]): Make =>
    (last) =>
      frame(type, some, recent(last, at), payload),
);

interface Step {
  readonly make: Make;
  /** Which bit is turned; beyond the end: none. */
  readonly turned: number;
  readonly cut: number;
  /** Which of the calls that are held ends now. */
  readonly ended: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  make: fc.oneof({ weight: 40, arbitrary: right }, { weight: 1, arbitrary: wrong }),
  turned: fc.oneof(
    { weight: 40, arbitrary: fc.constant(Infinity) },
    { weight: 1, arbitrary: fc.nat(200) },
  ),
  cut: fc.nat(60),
  ended: fc.nat(20),
});

function held(it: TestConnection): number {
  return [...it.calls].filter(({ isHeld }) => isHeld).length;
}

function look(it: TestConnection, ended: number): void {
  const call = [...it.calls].filter(({ isHeld }) => isHeld)[ended];
  call?.ended();
  it.sent();
  expect(it.failures).toEqual([]);
  // Held calls keep their slots; what is left of the others are streams that are open.
  expect(it.connection.slots).toBeGreaterThanOrEqual(held(it));
  expect(it.connection.slots).toBe(it.calls.size);
  expect(it.connection.slots).toBeLessThanOrEqual(LIMITS.streams);
  expect(it.queued).toBe(0);
  // As many answers as there may be streams.
  expect(it.held.bytes).toBeLessThanOrEqual(LIMITS.streams * 1_000 * 60 * 40);
}

test("whatever comes is answered, slots are the streams in use, and nothing is left in the end", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const it = begun(LIMITS);
      let last = -1;
      for (const { make, turned, cut, ended } of steps) {
        const some = make(last);
        if (some[3] === FRAME.HEADERS) last = Math.max(last, some.readUInt32BE(5));
        if (turned < some.length * 8)
          some[turned >> 3] = (some[turned >> 3] ?? 0) ^ (1 << (turned & 7));
        it.connection.receive(some.subarray(0, cut));
        it.connection.receive(some.subarray(cut));
        look(it, ended);
      }
      it.connection.closed();
      for (const call of it.calls) call.ended();
      expect(it.connection.slots).toBe(0);
      expect(it.calls.size).toBe(0);
      expect(it.held.bytes).toBe(0);
      expect(it.isEnded).toBe(true);
    }),
    { numRuns: isLong ? 100_000 : 500 },
  );
});
