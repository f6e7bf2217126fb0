import { MAX_ID, UnguessableIds, unguessableViolations } from "@idmint/core";
import type { Permutation } from "../../src/unguessable/domain.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { domainOf, hide, idRange, keyAndRest, reveal } from "../../src/unguessable/domain.ts";

/** One-to-one on all numerals, and other than nothing: a rotation of the whole number. */
function rotation(radix: number, by: bigint): Permutation {
  const base = BigInt(radix);
  const turn = (numerals: readonly number[], step: bigint): number[] => {
    const value = numerals.reduce((sum, numeral) => sum * base + BigInt(numeral), 0n);
    let rest = (((value + step) % base ** 4n) + base ** 4n) % base ** 4n;
    const turned = [0, 0, 0, 0];
    for (let at = 3; at >= 0; at--) {
      turned[at] = Number(rest % base);
      rest /= base;
    }
    return turned;
  };
  return {
    encrypt: (numerals) => turn(numerals, by),
    decrypt: (numerals) => turn(numerals, -by),
  };
}

const ceilings = fc.oneof(
  fc.bigInt({ min: 1_000_000n, max: 10n ** 17n }),
  fc.constantFrom(1_000_000n, 1_048_576n, 1_048_577n, 999_999_999n, 10n ** 17n),
);

test("the numerals reach the ceiling, and hardly beyond", () => {
  fc.assert(
    fc.property(ceilings, (ceiling) => {
      const { radix, scale } = domainOf(ceiling, 1);
      expect(BigInt(radix) ** 4n >= ceiling).toBe(true);
      expect(BigInt(radix - 1) ** 4n < ceiling).toBe(true);
      expect(radix).toBeLessThan(2 ** 16);
      expect(ceiling < scale && scale <= ceiling * 10n).toBe(true);
    }),
  );
});

test("every number has an id of its own under each key, and comes back", () => {
  const cases = fc.record({
    ceiling: ceilings,
    keys: fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 2 }),
    some: fc.array(fc.bigInt({ min: 1n, max: 10n ** 17n }), { minLength: 1, maxLength: 20 }),
    by: fc.bigInt({ min: 1n, max: 10n ** 17n }),
  });
  fc.assert(
    fc.property(cases, ({ ceiling, keys, some, by }) => {
      const domain = domainOf(ceiling, 1);
      const outside = BigInt(domain.radix) ** 4n - ceiling;
      // By more than lies outside, to either side, so that no walk takes more than two steps.
      const permutation = rotation(domain.radix, outside + 1n + (by % (ceiling - 2n * outside)));
      const ids = new Set<bigint>();
      const numbers = new Set([1n, ceiling, ...some.map((each) => (each % ceiling) + 1n)]);
      for (const key of keys) {
        for (const number of numbers) {
          const id = hide(domain, key, permutation, number);
          const { min, max } = idRange(domain);
          expect(min <= id && id <= max).toBe(true);
          const found = keyAndRest(domain, id)!;
          expect(found.keyId).toBe(key);
          expect(reveal(domain, permutation, found.rest)).toBe(number);
          ids.add(id);
        }
      }
      expect(ids.size).toBe(numbers.size * 2);
    }),
  );
});

test("a whole small domain is permuted onto itself", () => {
  const domain = { ceiling: 1_000n, scale: 10_000n, lastKey: 9, radix: 6 };
  const permutation = rotation(6, 777n);
  const ids = new Set<bigint>();
  for (let number = 1n; number <= 1_000n; number++) {
    ids.add(hide(domain, 3, permutation, number) - 30_000n);
  }
  expect(ids.size).toBe(1_000);
  expect([...ids].every((id) => id >= 1n && id <= 1_000n)).toBe(true);
});

test("numbers outside the domain are refused, and ids outside it are none", () => {
  const domain = domainOf(5_000_000n, 1);
  const permutation = rotation(domain.radix, 1n);
  expect(() => hide(domain, 1, permutation, 0n)).toThrow("TAG_EXHAUSTED");
  expect(() => hide(domain, 1, permutation, 5_000_001n)).toThrow("TAG_EXHAUSTED");
  for (const id of [0n, 1n, 5_000_000n, 10_000_000n, 15_000_001n, 100_000_001n, MAX_ID])
    expect(keyAndRest(domain, id)).toBeUndefined();
  expect(keyAndRest(domain, 15_000_000n)).toEqual({ keyId: 1, rest: 5_000_000n });
  expect(keyAndRest(domain, 90_000_001n)).toEqual({ keyId: 9, rest: 1n });
});

test("a permutation that never comes back to the domain ends in an error", () => {
  const domain = { ceiling: 1_000n, scale: 10_000n, lastKey: 9, radix: 6 };
  const stuck = { encrypt: () => [5, 5, 5, 5], decrypt: () => [5, 5, 5, 5] };
  expect(() => hide(domain, 1, stuck, 1n)).toThrow("INTERNAL");
});

const good = {
  order: "UNORDERED",
  ceiling: 1_000_000n,
  unguessable: { keyId: 1, keyDigits: 1 },
} as const;

test.each([
  ["order PER_CLIENT", { ...good, order: "PER_CLIENT" as const }, "tag.unguessable"],
  ["fewer numbers could all be tried", { ...good, ceiling: 999_999n }, "tag.ceiling"],
  ["must be at most", { ...good, ceiling: MAX_ID }, "tag.ceiling"],
  ["1 to 9", { ...good, unguessable: { keyId: 0, keyDigits: 1 } }, "tag.unguessable.key_id"],
  ["1 to 9", { ...good, unguessable: { keyId: 10, keyDigits: 1 } }, "tag.unguessable.key_id"],
  ["1 to 3", { ...good, unguessable: { keyId: 1, keyDigits: 0 } }, "tag.unguessable.key_digits"],
  ["1 to 3", { ...good, unguessable: { keyId: 1, keyDigits: 4 } }, "tag.unguessable.key_digits"],
])("refused: %s", (what, settings, field) => {
  const found = unguessableViolations("tag.unguessable", settings);
  expect(found).toHaveLength(1);
  expect(found[0]?.field).toBe(field);
  expect(found[0]?.description).toContain(what);
});

test.each([1, 2, 3])(
  "the highest ceiling that is accepted with %i digits of key fits an id",
  (digits) => {
    const at = (ceiling: bigint) =>
      unguessableViolations("tag.unguessable", {
        ...good,
        ceiling,
        unguessable: { keyId: 1, keyDigits: digits },
      });
    const most = BigInt(/must be at most (\d+)/.exec(at(MAX_ID)[0]!.description)?.[1] ?? 0);
    expect(at(most)).toEqual([]);
    expect(at(most + 1n)).toHaveLength(1);
    expect(idRange(domainOf(most, digits)).max <= MAX_ID).toBe(true);
    // One more would not fit, or would take a digit more.
    expect(idRange(domainOf(most + 1n, digits)).max > MAX_ID).toBe(true);
  },
);

test("ids of a key that is not here are told apart from what is no id", () => {
  const ids = new UnguessableIds({ ceiling: 5_000_000n, keyDigits: 1 }, [
    [2, (radix) => rotation(radix, 1n)],
    [4, (radix) => rotation(radix, 2n)],
  ]);
  expect(ids.hide(7n, 2)).toBe(20_000_008n);
  expect(ids.hide(7n, 4)).toBe(40_000_009n);
  expect(ids.reveal(40_000_009n)).toEqual({ number: 7n, keyId: 4 });
  expect(() => ids.hide(7n, 3)).toThrow("KEY_UNKNOWN: key 3 ");
  expect(() => ids.reveal(30_000_008n)).toThrow("INVALID_ID: id is an id of key 3");
  expect(() => ids.reveal(8n)).toThrow("INVALID_ID: id 8 is no id of this tag");
});
