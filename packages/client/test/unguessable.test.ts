import { unguessableIds } from "@idmint/client/unguessable";
import { IdmintError } from "@idmint/core";
import { FF1 } from "@noble/ciphers/ff1.js";
import fc from "fast-check";
import { expect, test } from "vitest";

const key = (byte: number, length = 32) => new Uint8Array(length).fill(byte);
const hex = (text: string) => Uint8Array.from(Buffer.from(text, "hex"));
const digits = (text: string) => text.split("").map((digit) => Number.parseInt(digit, 36));

const KEY_128 = "2B7E151628AED2A6ABF7158809CF4F3C";
const KEY_192 = `${KEY_128}EF4359D8D580AA4F`;
const KEY_256 = `${KEY_192}7F036D6F04FC6A94`;

// The sample vectors that NIST publishes for FF1.
test.each([
  [KEY_128, 10, "", "0123456789", "2433477484"],
  [KEY_128, 10, "39383736353433323130", "0123456789", "6124200773"],
  [KEY_128, 36, "3737373770717273373737", "0123456789abcdefghi", "a9tv40mll9kdu509eum"],
  [KEY_192, 10, "", "0123456789", "2830668132"],
  [KEY_192, 10, "39383736353433323130", "0123456789", "2496655549"],
  [KEY_192, 36, "3737373770717273373737", "0123456789abcdefghi", "xbj3kv35jrawxv32ysr"],
  [KEY_256, 10, "", "0123456789", "6657667009"],
  [KEY_256, 10, "39383736353433323130", "0123456789", "1001623463"],
  [KEY_256, 36, "3737373770717273373737", "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"],
])("FF1 with key %s, radix %i, tweak %s: %s is %s", (secret, radix, tweak, plain, encrypted) => {
  const ff1 = FF1(radix, hex(secret), hex(tweak));
  expect(ff1.encrypt(digits(plain))).toEqual(digits(encrypted));
  expect(ff1.decrypt(digits(encrypted))).toEqual(digits(plain));
});

const options = { tag: "orders", ceiling: 999_999_999n, keys: { 1: key(1), 2: key(2) } };

test("each number has one id under each key, and comes back", () => {
  const ids = unguessableIds(options);
  const number = fc.oneof(
    fc.bigInt({ min: 1n, max: options.ceiling }),
    fc.constantFrom(1n, 2n, options.ceiling, options.ceiling - 1n),
  );
  fc.assert(
    fc.property(fc.uniqueArray(number, { maxLength: 10 }), (numbers) => {
      const made = numbers.flatMap((each) => [ids.hide(each, 1), ids.hide(each, 2)]);
      expect(new Set(made).size).toBe(numbers.length * 2);
      for (const [at, each] of made.entries())
        expect(ids.reveal(each)).toEqual({ number: numbers[at >> 1], keyId: (at % 2) + 1 });
    }),
  );
});

test("two keys never make the same id: the number of the key stands in front", () => {
  const ids = unguessableIds(options);
  for (let number = 1n; number <= 200n; number++) {
    expect(ids.hide(number, 1) / 1_000_000_000n).toBe(1n);
    expect(ids.hide(number, 2) / 1_000_000_000n).toBe(2n);
  }
});

test("neighbours are far apart, and tags of one key differ", () => {
  const ids = unguessableIds(options);
  const others = unguessableIds({ ...options, tag: "invoices" });
  let near = 0;
  for (let number = 1n; number <= 200n; number++) {
    const gap = ids.hide(number, 1) - ids.hide(number + 1n, 1);
    if (gap > -1_000n && gap < 1_000n) near++;
    if (ids.hide(number, 1) === others.hide(number, 1)) near++;
  }
  expect(near).toBeLessThan(5);
});

test.each([
  ["options.keys must be 16, 24 or 32 bytes long, got 20", { keys: { 1: key(1, 20) } }],
  ["options.key_id must be 1 to 9, got 10", { keys: { 10: key(1) } }],
  ["tag.ceiling must be at least 1000000", { ceiling: 999_999n }],
])("refused: %s", (text, wrong) => {
  expect(() => unguessableIds({ ...options, ...wrong })).toThrow(text);
});

test("without its key an id stays closed", () => {
  const ids = unguessableIds({ ...options, keys: { 2: key(2) } });
  const id = unguessableIds(options).hide(5n, 1);
  expect(() => ids.reveal(id)).toThrow("id is an id of key 1, which this program does not have");
  expect(() => ids.hide(5n, 1)).toThrow(IdmintError);
});
