// Readers of one value each of a tag's row. They throw TypeError for what no release wrote.
import { MAX_ID } from "../limits.ts";

export function idFrom(value: unknown): bigint {
  if (typeof value !== "string") throw new TypeError("an id is a text");
  const number = BigInt(value);
  if (number < 1n || number > MAX_ID) throw new TypeError(`${value} is no id`);
  return number;
}

export function integerFrom(value: unknown, min: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= min) return value as number;
  throw new TypeError(`${String(value)} is no whole number from ${min}`);
}

export function oneOf<T extends string | number>(value: unknown, known: readonly T[]): T {
  const found = known.find((each) => each === value);
  if (found !== undefined) return found;
  throw new TypeError(`${String(value)} is none of ${known.join(", ")}`);
}

export function textFrom(value: unknown): string {
  if (typeof value === "string") return value;
  throw new TypeError(`${String(value)} is no text`);
}
