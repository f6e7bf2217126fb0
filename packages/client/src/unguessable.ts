import { createHash } from "node:crypto";
import {
  assertNoViolations,
  invalidField,
  type KeyedPermutation,
  UnguessableIds,
  unguessableViolations,
} from "@idmint/core";
import { FF1 } from "@noble/ciphers/ff1.js";

export type { UnguessableIds } from "@idmint/core";

/** The settings and keys of the unguessable ids of one tag. */
export interface UnguessableOptions {
  /** Name of the tag. */
  readonly tag: string;
  /** The tag's ceiling. */
  readonly ceiling: bigint;
  /** The tag's key_digits. Default: 1. */
  readonly keyDigits?: number | undefined;
  /** Keys by their number, 16, 24 or 32 bytes each. The servers' key files have the same keys in hexadecimal digits. */
  readonly keys: Readonly<Record<number, Uint8Array>>;
}

/**
 * Turns unguessable ids into numbers and back, as the servers do, in a program that has the keys. It asks no server. Keys
 * and settings that no tag can have are INVALID_ARGUMENT.
 */
export function unguessableIds(options: UnguessableOptions): UnguessableIds {
  const { tag, ceiling, keyDigits = 1 } = options;
  const keys = Object.entries(options.keys).map(([number, key]): [number, KeyedPermutation] => {
    const keyId = Number(number);
    const settings = { order: "UNORDERED", ceiling, unguessable: { keyId, keyDigits } } as const;
    assertNoViolations(...unguessableViolations("options", settings));
    if (![16, 24, 32].includes(key.length))
      throw invalidField("options.keys", `must be 16, 24 or 32 bytes long, got ${key.length}`);
    return [keyId, (radix) => FF1(radix, Uint8Array.from(key), tweakOf(tag))];
  });
  return new UnguessableIds({ ceiling, keyDigits }, keys);
}

/** Tags that share a key have different permutations. */
function tweakOf(tag: string): Uint8Array {
  return createHash("sha256").update(tag).digest().subarray(0, 8);
}
