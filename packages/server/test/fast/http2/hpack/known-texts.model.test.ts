// Fields that come as text again and again are as they are when nothing is remembered.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Field } from "../../../../src/fast/http2/hpack/fields.ts";
import { HpackDecoder } from "../../../../src/fast/http2/hpack/decoder.ts";

/** Both names that are remembered, one of them under two indexes, and one that is not. */
const NAMES = [
  [4, ":path"],
  [5, ":path"],
  [28, "content-length"],
  [31, "content-type"],
] as const;

interface Sent {
  readonly name: (typeof NAMES)[number];
  readonly value: string;
  readonly isHuffman: boolean;
  readonly isNever: boolean;
}

const octets = (value: string): Buffer => Buffer.from(value, "latin1");

function string({ value, isHuffman }: Sent): Buffer {
  return Buffer.concat([Buffer.from([(isHuffman ? 0x80 : 0) | value.length]), octets(value)]);
}

/** Of a name by its index, which may be remembered; or of a name as text, which never is. */
function blockOf(sent: Sent, isByIndex: boolean): Buffer {
  const flags = sent.isNever ? 0x10 : 0;
  const [index, name] = sent.name;
  const named = isByIndex
    ? Buffer.from(index < 15 ? [flags | index] : [flags | 15, index - 15])
    : Buffer.concat([Buffer.from([flags, name.length]), octets(name)]);
  return Buffer.concat([named, string(sent)]);
}

/** What a block is to whoever takes its fields, at most `most` bytes of them. */
function outcome(block: Buffer, most: number): unknown {
  const fields: Field[] = [];
  try {
    const size = new HpackDecoder(most).decode(block, 0, block.length, (field) =>
      fields.push({ ...field }),
    );
    return { size, fields };
  } catch (thrown) {
    return String(thrown);
  }
}

/** As text and as Huffman's code: `c1` and `Á` are the same octets, `0` and `00` are not. */
const value: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom("0", "00", "/a", "/idmint.v1.IdService/GenerateId", "\u{1f}\u{ff}", "\r", " "),
  fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
);
const sent: fc.Arbitrary<Sent> = fc.record({
  name: fc.constantFrom(...NAMES),
  value,
  isHuffman: fc.boolean(),
  isNever: fc.boolean(),
});

test("what is remembered of texts is what reading them gives", () => {
  fc.assert(
    fc.property(fc.array(sent, { minLength: 1, maxLength: 60 }), fc.nat(200), (all, most) => {
      for (const each of [...all, ...all]) {
        const byIndex = blockOf(each, true);
        expect(outcome(byIndex, most)).toEqual(outcome(blockOf(each, false), most));
        // Its memory is used again for others.
        byIndex.fill(0xff);
      }
    }),
    { numRuns: 300 },
  );
});
