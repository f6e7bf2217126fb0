import fc from "fast-check";
import { expect, test } from "vitest";
import { endsMessage, isOneMessage } from "../../src/grpc/message-bounds.ts";

/** Messages as they are on the wire. */
function framed(lengths: readonly number[]): Buffer {
  return Buffer.concat(
    lengths.map((length) => {
      // A body that looks like the beginning of other messages.
      const bytes = Buffer.alloc(5 + length);
      bytes.writeUInt32BE(length, 1);
      return bytes;
    }),
  );
}

test("the ends of messages are found wherever chunks end", () => {
  const lengths = fc.array(fc.nat(400), { minLength: 1, maxLength: 20 });
  const cuts = fc.array(fc.nat(9_000), { maxLength: 60 });
  fc.assert(
    fc.property(lengths, cuts, (of, at) => {
      const bytes = framed(of);
      let end = 0;
      const ends = new Set(of.map((length) => (end += 5 + length)));
      const bounds = { prefix: 0, length: 0, body: 0 };
      const places = [0, ...at.filter((cut) => cut < bytes.length).toSorted((a, b) => a - b)];
      for (const [index, from] of places.entries()) {
        const to = places[index + 1] ?? bytes.length;
        const hasEnd = [...ends].some((each) => each > from && each <= to);
        expect(endsMessage(bounds, bytes.subarray(from, to))).toBe(hasEnd);
      }
      expect(bounds).toEqual({ prefix: 0, length: 0, body: 0 });
    }),
  );
});

test("a chunk is one message only when its length says so", () => {
  expect(isOneMessage(framed([12]))).toBe(true);
  expect(isOneMessage(framed([0]))).toBe(true);
  expect(isOneMessage(framed([12, 12]))).toBe(false);
  expect(isOneMessage(framed([12]).subarray(0, 16))).toBe(false);
  expect(isOneMessage(Buffer.alloc(4))).toBe(false);
});
