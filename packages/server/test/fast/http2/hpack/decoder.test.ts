import { expect, test } from "vitest";
import { HpackDecoder, HpackError, TABLE_BYTES } from "../../../../src/fast/http2/hpack/decoder.ts";

function decode(decoder: HpackDecoder, block: Buffer): string[] {
  const fields: string[] = [];
  decoder.decode(block, 0, block.length, ({ name, value }) => fields.push(`${name}: ${value}`));
  return fields;
}

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

const GET = [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];
const THIRD = [
  ":method: GET",
  ":scheme: https",
  ":path: /index.html",
  ":authority: www.example.com",
  "custom-key: custom-value",
];
const date = (second: number): string => `date: Mon, 21 Oct 2013 20:13:${second} GMT`;
const FOUND = ["cache-control: private", date(21), "location: https://www.example.com"];
const LAST = [
  ":status: 200",
  "cache-control: private",
  date(22),
  "location: https://www.example.com",
  "content-encoding: gzip",
  "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
];
/** The examples of C.5 and C.6 are of a table of 256 bytes. */
const RESIZED = hex("3fe101");

test.each<[string, readonly (readonly [block: string, fields: readonly string[]])[], Buffer?]>([
  [
    "C.2.1",
    [
      [
        "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
        ["custom-key: custom-header"],
      ],
    ],
  ],
  ["C.2.2", [["040c 2f73 616d 706c 652f 7061 7468", [":path: /sample/path"]]]],
  ["C.2.3", [["1008 7061 7373 776f 7264 0673 6563 7265 74", ["password: secret"]]]],
  ["C.2.4", [["82", [":method: GET"]]]],
  [
    "C.3",
    [
      ["8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", GET],
      ["8286 84be 5808 6e6f 2d63 6163 6865", [...GET, "cache-control: no-cache"]],
      ["8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", THIRD],
    ],
  ],
  [
    "C.4",
    [
      ["8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", GET],
      ["8286 84be 5886 a8eb 1064 9cbf", [...GET, "cache-control: no-cache"]],
      ["8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", THIRD],
    ],
  ],
  [
    "C.5",
    [
      [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        [":status: 302", ...FOUND],
      ],
      ["4803 3330 37c1 c0bf", [":status: 307", ...FOUND]],
      [
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
        LAST,
      ],
    ],
    RESIZED,
  ],
  [
    "C.6",
    [
      [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        [":status: 302", ...FOUND],
      ],
      ["4883 640e ffc1 c0bf", [":status: 307", ...FOUND]],
      [
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        LAST,
      ],
    ],
    RESIZED,
  ],
])("RFC 7541, %s", (_name, blocks, before = Buffer.alloc(0)) => {
  const decoder = new HpackDecoder(8_192);
  decode(decoder, before);
  for (const [block, fields] of blocks) expect(decode(decoder, hex(block))).toEqual(fields);
});

test.each([
  ["index 0", "80"],
  ["an index beyond both tables", "be"],
  ["an index beyond both tables", "7e 01 61"],
  ["a change of the table's size behind a field", "82 20"],
  ["a table larger than the settings allow", "3f e2 1f"],
  ["a block that ends too early", "40 01 61"],
  ["a block that ends too early", "ff 80"],
  ["an integer of more than 28 bits", "ff 80 80 80 80 01"],
  ["a string that ends beyond its block", "40 0a 61"],
  // "0" is 00000; what is left must be ones.
  ["a string whose Huffman code is not right", "40 01 61 81 00"],
  // A byte of padding.
  ["a string whose Huffman code is not right", "40 01 61 82 07 ff"],
  // EOS.
  ["a string whose Huffman code is not right", "40 01 61 84 ff ff ff ff"],
])("%s is refused", (why, block) => {
  const decoder = new HpackDecoder(8_192);
  expect(() => decode(decoder, hex(block))).toThrow(new HpackError(why));
});

test("the table may be as large as its limit, and be emptied and filled again in front of a block", () => {
  const decoder = new HpackDecoder(8_192);
  expect(decode(decoder, hex("3fe11f 20 3fe11f 400161 0162"))).toEqual(["a: b"]);
  expect(decode(decoder, hex("be"))).toEqual(["a: b"]);
  // Emptied for a block: nothing of it is left for the next.
  expect(decode(decoder, hex("20 3fe11f 82"))).toEqual([":method: GET"]);
  expect(() => decode(decoder, hex("be"))).toThrow(HpackError);
});

test("a table that is exactly full forgets nothing, and then the oldest field", () => {
  const decoder = new HpackDecoder(8_192);
  // 68 bytes, for two fields of 34.
  expect(decode(decoder, hex("3f25 400161 0162 400163 0164"))).toEqual(["a: b", "c: d"]);
  expect(decode(decoder, hex("be bf"))).toEqual(["c: d", "a: b"]);
  expect(decode(decoder, hex("400165 0166 be bf"))).toEqual(["e: f", "e: f", "c: d"]);
  expect(() => decode(decoder, hex("c0"))).toThrow(HpackError);
  const small = new HpackDecoder(8_192);
  expect(decode(small, hex("3f03 400161 0162 be"))).toEqual(["a: b", "a: b"]);
  // One byte more does not fit, and empties it.
  expect(decode(small, hex("400161 026262"))).toEqual(["a: bb"]);
  expect(() => decode(small, hex("be"))).toThrow(HpackError);
});

test("a list that is too large is counted, not made, and the table stays right", () => {
  const decoder = new HpackDecoder(1_000);
  const value = Buffer.alloc(500, "v");
  const field = Buffer.concat([hex("400161 7ff502"), hex(""), value.subarray(0, 500)]);
  // 500 is 7f f5 02.
  const fields: string[] = [];
  const block = Buffer.concat([field, Buffer.alloc(1_000, 0xbe), hex("400162 0163")]);
  const size = decoder.decode(block, 0, block.length, ({ name }) => fields.push(name));
  expect(size).toBe(1_001 * (1 + 500 + 32) + 34);
  expect(fields).toEqual(["a"]);
  // What came behind the limit is in the table: the newest, and the large one behind it.
  expect(decode(decoder, hex("be"))).toEqual(["b: c"]);
  expect(decode(decoder, hex("bf"))).toEqual([`a: ${"v".repeat(500)}`]);
});

test("a field that is larger than the table empties it, and one larger than the list as well", () => {
  const decoder = new HpackDecoder(10_000);
  decode(decoder, hex("400161 0162"));
  const length = TABLE_BYTES;
  // 4,096 - 127 = 3,969: 81 1f.
  const block = Buffer.concat([hex("400163 7f811f"), Buffer.alloc(length, "x")]);
  expect(decode(decoder, block)).toHaveLength(1);
  expect(() => decode(decoder, hex("be"))).toThrow(HpackError);
  const small = new HpackDecoder(100);
  decode(small, hex("400161 0162"));
  expect(decode(small, block)).toEqual([]);
  expect(() => decode(small, hex("be"))).toThrow(HpackError);
});
