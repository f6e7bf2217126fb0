// HPACK against an encoder of its own: every form of RFC 7541 that carries a field, in every order.
import fc from "fast-check";
import { expect, test } from "vitest";
import { HpackDecoder, HpackError } from "../../../../src/fast/http2/hpack/decoder.ts";
import { STATIC_TABLE } from "../../../../src/fast/http2/hpack/static-table.ts";

type Pair = readonly [name: string, value: string];

/** RFC 7541, 5.1. */
function integer(value: number, flags: number, bits: number): number[] {
  const most = 2 ** bits - 1;
  if (value < most) return [flags | value];
  const octets = [flags | most];
  let left = value - most;
  for (; left >= 128; left = Math.floor(left / 128)) octets.push((left % 128) + 128);
  return [...octets, left];
}

function text(value: string): number[] {
  return [...integer(value.length, 0, 7), ...Buffer.from(value, "latin1")];
}

const FORMS = ["kept", "plain", "never"] as const;

/** An encoder that uses whatever form it is told to, and knows the table by a list. */
class Encoder {
  table: Pair[] = [];
  #limit = 4_096;

  field(pair: Pair, form: (typeof FORMS)[number], useTable: boolean): number[] {
    const all: readonly Pair[] = [
      ...STATIC_TABLE.map(({ name, value }): Pair => [name, value]),
      ...this.table,
    ];
    const whole = all.findIndex(([name, value]) => name === pair[0] && value === pair[1]);
    if (whole >= 0 && useTable) return integer(whole + 1, 0x80, 7);
    const name = useTable ? all.findLastIndex(([known]) => known === pair[0]) + 1 : 0;
    const [flags, bits] = { kept: [0x40, 6], plain: [0, 4], never: [0x10, 4] }[form] as [
      number,
      number,
    ];
    const bytes = [
      ...integer(name, flags, bits),
      ...(name === 0 ? text(pair[0]) : []),
      ...text(pair[1]),
    ];
    if (form === "kept") {
      this.table.unshift(pair);
      this.#evict();
    }
    return bytes;
  }

  resize(limit: number): number[] {
    this.#limit = limit;
    this.#evict();
    return integer(limit, 0x20, 5);
  }

  #evict(): void {
    const size = (): number =>
      this.table.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
    while (size() > this.#limit) this.table.pop();
  }
}

const name = fc.constantFrom("a", "b", ":path", "content-type", "x-long-name-of-a-field", "cookie");
const value = fc.oneof(
  fc.constantFrom("", "/", "1", "application/grpc"),
  fc.string({ unit: "binary-ascii", maxLength: 40 }),
  fc.integer({ min: 100, max: 5_000 }).map((length) => "v".repeat(length)),
);
const block = fc.record({
  sizes: fc.array(fc.integer({ min: 0, max: 4_096 }), { maxLength: 2 }),
  fields: fc.array(fc.tuple(fc.tuple(name, value), fc.constantFrom(...FORMS), fc.boolean()), {
    maxLength: 20,
  }),
});

test("what an encoder sends is what comes out, and its table is ours", () => {
  fc.assert(
    fc.property(fc.array(block, { maxLength: 12 }), (blocks) => {
      const encoder = new Encoder();
      const decoder = new HpackDecoder(1_000_000);
      for (const { sizes, fields } of blocks) {
        const bytes = [
          ...sizes.flatMap((size) => encoder.resize(size)),
          ...fields.flatMap(([pair, form, useTable]) => encoder.field(pair, form, useTable)),
        ];
        const found: Pair[] = [];
        decoder.decode(Buffer.from(bytes), 0, bytes.length, (field) =>
          found.push([field.name, field.value]),
        );
        expect(found).toEqual(fields.map(([pair]) => pair));
        const kept: Pair[] = [];
        const all = encoder.table.flatMap((_, at) => integer(62 + at, 0x80, 7));
        decoder.decode(Buffer.from(all), 0, all.length, (field) =>
          kept.push([field.name, field.value]),
        );
        expect(kept).toEqual(encoder.table);
      }
    }),
    { numRuns: process.env["IDMINT_LONG"] === "1" ? 10_000 : 60 },
  );
});

test("bytes that nobody encoded are refused, or give fields within the limit, and nothing else is thrown", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 80 }), { maxLength: 10 }), (blocks) => {
      const decoder = new HpackDecoder(500);
      for (const bytes of blocks) {
        let size = 0;
        try {
          decoder.decode(Buffer.from(bytes), 0, bytes.length, (field) => (size += field.size));
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(HpackError);
          return;
        }
        expect(size).toBeLessThanOrEqual(500);
      }
    }),
    { numRuns: process.env["IDMINT_LONG"] === "1" ? 200_000 : 3_000 },
  );
});
