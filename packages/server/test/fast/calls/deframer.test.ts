import { deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Deframer, MAX_MESSAGE_BYTES, type TakeMessage } from "../../../src/fast/calls/deframer.ts";
import { ACCEPTED, decompress, isKnownEncoding } from "../../../src/fast/calls/encoding.ts";
import { FRAMING } from "../../../src/fast/calls/framing.ts";

interface Message {
  readonly text: string;
  readonly isCompressed: boolean;
}

const message: fc.Arbitrary<Message> = fc.record({
  text: fc.string({ maxLength: 300 }),
  isCompressed: fc.boolean(),
});

function framed({ text, isCompressed }: Message): Buffer {
  const bytes = Buffer.from(text);
  const prefix = Buffer.alloc(5);
  prefix[0] = isCompressed ? 1 : 0;
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** Cuts bytes where it is told, and puts other bytes around each part. */
function* parts(
  bytes: Buffer,
  cuts: readonly number[],
): Generator<readonly [Buffer, number, number]> {
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted(
    (a, b) => a - b,
  );
  let from = 0;
  for (const end of ends) {
    const part = bytes.subarray(from, end);
    const around = Buffer.alloc(3, 0xff);
    yield [Buffer.concat([around, part, around]), 3, 3 + part.length];
    from = end;
  }
}

test("messages are the same however they are cut, and whenever they are wanted", () => {
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 12 }),
      fc.array(fc.nat(), { maxLength: 30 }),
      fc.array(fc.boolean(), { maxLength: 40 }),
      (messages, cuts, wishes) => {
        const deframer = new Deframer();
        const taken: Message[] = [];
        const wanted = [...wishes];
        const take: TakeMessage = (part, from, to, isCompressed) => {
          taken.push({ text: part.toString("utf8", from, to), isCompressed });
          return wanted.pop() ?? true;
        };
        const bytes = Buffer.concat(messages.map((each) => framed(each)));
        for (const [part, from, to] of parts(bytes, cuts)) {
          if (wanted.pop() ?? true) expect(deframer.take(part, from, to, take)).toBeUndefined();
          else deframer.keep(part, from, to);
        }
        while (deframer.kept > 0) deframer.take(Buffer.alloc(0), 0, 0, take);
        expect(taken).toEqual(messages);
      },
    ),
  );
});

test("what is kept is what came and was not handed on", () => {
  const deframer = new Deframer();
  const bytes = Buffer.concat([
    framed({ text: "one", isCompressed: false }),
    framed({ text: "two", isCompressed: false }),
  ]);
  deframer.take(bytes, 0, 7, () => true);
  expect(deframer.kept).toBe(7);
  deframer.take(bytes, 7, bytes.length, () => false);
  expect(deframer.kept).toBe(8);
  deframer.take(bytes, 0, 0, () => true);
  expect(deframer.kept).toBe(0);
  deframer.keep(bytes, 0, 9);
  deframer.clear();
  expect(deframer.kept).toBe(0);
});

function never(): boolean {
  throw new Error("there is no message");
}

test("a flag that is none, and a message that is too large, are told before they are whole", () => {
  expect(new Deframer().take(Buffer.from([2, 0, 0, 0, 0]), 0, 5, never)).toBe("flag");
  const head = Buffer.alloc(5);
  head.writeUInt32BE(MAX_MESSAGE_BYTES + 1, 1);
  expect(new Deframer().take(head, 0, 5, never)).toBe("tooLarge");
  head.writeUInt32BE(MAX_MESSAGE_BYTES, 1);
  const deframer = new Deframer();
  expect(deframer.take(head, 0, 5, never)).toBeUndefined();
  let length = 0;
  const count: TakeMessage = (_, from, to) => {
    length = to - from;
    return true;
  };
  expect(
    deframer.take(Buffer.alloc(MAX_MESSAGE_BYTES), 0, MAX_MESSAGE_BYTES, count),
  ).toBeUndefined();
  expect(length).toBe(MAX_MESSAGE_BYTES);
});

test("messages come in every encoding that callers are told of, and no larger than a message may be", () => {
  const text = Buffer.from("orders".repeat(100));
  const encodings = { gzip: gzipSync, deflate: deflateSync };
  expect(ACCEPTED.split(",").toSorted()).toEqual(
    ["identity", ...Object.keys(encodings)].toSorted(),
  );
  for (const [name, compress] of Object.entries(encodings)) {
    expect(isKnownEncoding(name)).toBe(true);
    expect(decompress(compress(text), name)).toEqual(text);
    expect(decompress(compress(Buffer.alloc(0)), name)).toEqual(Buffer.alloc(0));
    const largest = Buffer.alloc(MAX_MESSAGE_BYTES, 7);
    expect(decompress(compress(largest), name)).toEqual(largest);
    // A few KiB that would be 16 MiB.
    const one = Buffer.alloc(MAX_MESSAGE_BYTES + 1, 7);
    expect(decompress(compress(one), name)).toBe(FRAMING.tooLargeInside);
    expect(decompress(compress(Buffer.alloc(16 * 2 ** 20)), name)).toBe(FRAMING.tooLargeInside);
    expect(decompress(compress(text).subarray(0, -1), name)).toBe(FRAMING.notCompressed);
    expect(decompress(text, name)).toBe(FRAMING.notCompressed);
  }
  for (const none of ["", "identity"]) expect(decompress(text, none)).toBe(FRAMING.noEncoding);
  expect(
    ["", "identity", "br", "GZIP", "gzip,deflate"].map((each) => isKnownEncoding(each)),
  ).toEqual([true, true, false, false, false]);
});
