/** Bases numbers are written in. */
export type Radix = 10 | 16 | 32 | 36 | 58 | 62;

const DIGITS = "0123456789";
const UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LOWER = "abcdefghijklmnopqrstuvwxyz";

/**
 * The digits of each base, in the order of ASCII. So of two padded numbers the larger one is also the later text. Base
 * 32 is Crockford's (without I, L, O, U); base 58 has no 0, O, I and l.
 */
export const ALPHABETS: Readonly<Record<Radix, string>> = {
  10: DIGITS,
  16: `${DIGITS}abcdef`,
  32: `${DIGITS}ABCDEFGHJKMNPQRSTVWXYZ`,
  36: DIGITS + LOWER,
  58: `123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz`,
  62: DIGITS + UPPER + LOWER,
};

/** The base of a number, e.g. 58 for "58"; undefined when there is none. */
export function radixOf(text: string): Radix | undefined {
  return Object.hasOwn(ALPHABETS, text) ? (Number(text) as Radix) : undefined;
}

/** A number of 0 and more, without leading zeros. */
export function digitsOf(value: bigint, radix: Radix): string {
  if (radix === 10 || radix === 16 || radix === 36) return value.toString(radix);
  const alphabet = ALPHABETS[radix];
  const base = BigInt(radix);
  let rest = value;
  let text = "";
  // Numbers are many times faster than bigints; ids below 2^53 need no bigint at all.
  while (rest > BigInt(Number.MAX_SAFE_INTEGER)) {
    text = alphabet.charAt(Number(rest % base)) + text;
    rest /= base;
  }
  let small = Number(rest);
  do {
    text = alphabet.charAt(small % radix) + text;
    small = Math.floor(small / radix);
  } while (small > 0);
  return text;
}

/** INVARIANT: a number is never cut. Answers undefined for one that needs more digits than its width. */
export function paddedDigits(value: bigint, radix: Radix, width: number): string | undefined {
  const digits = digitsOf(value, radix);
  if (digits.length > width) return undefined;
  return digits.padStart(width, ALPHABETS[radix].charAt(0));
}

/** Reads a number in a base. Leading zeros do not count. */
export function valueOf(digits: string, radix: Radix): bigint {
  const alphabet = ALPHABETS[radix];
  const base = BigInt(radix);
  let value = 0n;
  for (const digit of digits) value = value * base + BigInt(alphabet.indexOf(digit));
  return value;
}

/** The position of the first character that is no digit of the base; −1 when all are. */
export function badDigitAt(text: string, radix: Radix): number {
  const alphabet = ALPHABETS[radix];
  for (let at = 0; at < text.length; at++) if (!alphabet.includes(text.charAt(at))) return at;
  return -1;
}
