import { MAX_ID } from "@idmint/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  badDigitAt,
  digitsOf,
  paddedDigits,
  radixOf,
  valueOf,
} from "../../../src/server/format/radix.ts";

const radixes = fc.constantFrom(
  10 as const,
  16 as const,
  32 as const,
  36 as const,
  58 as const,
  62 as const,
);
const numbers = fc.oneof(
  fc.bigInt({ min: 0n, max: MAX_ID }),
  fc.constantFrom(0n, 1n, 57n, 58n, 61n, 62n, 2n ** 53n - 1n, 2n ** 53n, MAX_ID),
);

test("a number is the value of its digits, which have no zeros in front", () => {
  fc.assert(
    fc.property(numbers, radixes, (number, radix) => {
      const digits = digitsOf(number, radix);
      expect(valueOf(digits, radix)).toBe(number);
      expect(badDigitAt(digits, radix)).toBe(-1);
      const base = BigInt(radix);
      expect(number === 0n || number >= base ** BigInt(digits.length - 1)).toBe(true);
    }),
  );
});

test("a padded number is that many digits, or none at all: it is never cut", () => {
  fc.assert(
    fc.property(numbers, radixes, fc.integer({ min: 1, max: 20 }), (number, radix, width) => {
      const digits = paddedDigits(number, radix, width);
      if (number >= BigInt(radix) ** BigInt(width)) expect(digits).toBeUndefined();
      else expect([digits?.length, valueOf(digits ?? "", radix)]).toEqual([width, number]);
    }),
  );
});

test("known numbers, and bases there are not", () => {
  expect(digitsOf(MAX_ID, 62)).toBe("AzL8n0Y58m7");
  expect(digitsOf(MAX_ID, 32)).toBe("7ZZZZZZZZZZZZ");
  expect(digitsOf(0n, 58)).toBe("1");
  expect(badDigitAt("12O4", 58)).toBe(2);
  expect([radixOf("10"), radixOf("58")]).toEqual([10, 58]);
  for (const text of ["64", "010", "", "1e1", "constructor"]) expect(radixOf(text)).toBeUndefined();
});
