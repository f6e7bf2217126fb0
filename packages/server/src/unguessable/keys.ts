import { createHash, createHmac } from "node:crypto";
import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { type FieldViolation, invalidFields } from "@idmint/core";
import { FF1 } from "@noble/ciphers/ff1.js";
import type { UnguessableKey } from "../service/issue/tag-text.ts";

const MAX_FILE_BYTES = 1_024;
const HEX_KEY = /^(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{48}|[0-9a-fA-F]{64})$/;
/** Others may not read the file, and nobody but its owner may change it. */
const FORBIDDEN_MODE = 0o027;
/** Longer ones would take another block of the cipher in every round. */
const TWEAK_BYTES = 8;
const FIELD = "unguessable.keys";

/**
 * Reads the key files of the configuration, by the number of their key. INVALID_ARGUMENT that names every file that cannot be used, by the number of its
 * key; what is in a file is never shown. Two numbers for one key are refused: one of them is a mistake.
 */
export function readKeys(files: ReadonlyMap<number, string>): ReadonlyMap<number, UnguessableKey> {
  const keys = new Map<number, UnguessableKey>();
  const violations: FieldViolation[] = [];
  for (const [keyId, path] of files) {
    const read = readKey(path);
    if ("fault" in read) {
      violations.push({ field: FIELD, description: `${keyId} ${read.fault}` });
      continue;
    }
    const key = keyOf(read.key);
    const twin = [...keys].find(([, { check }]) => check === key.check);
    if (twin !== undefined)
      violations.push({ field: FIELD, description: `${keyId} is the same key as ${twin[0]}` });
    keys.set(keyId, key);
  }
  if (violations.length > 0) throw invalidFields(violations);
  return keys;
}

/** A key of 16, 24 or 32 bytes. */
export function keyOf(key: Uint8Array): UnguessableKey {
  const own = Uint8Array.from(key);
  return {
    permutationOf: (tag) => {
      const tweak = createHash("sha256").update(tag).digest().subarray(0, TWEAK_BYTES);
      return (radix) => FF1(radix, own, tweak);
    },
    check: createHmac("sha256", own).update("idmint unguessable key").digest("hex").slice(0, 16),
  };
}

function readKey(path: string): { readonly key: Uint8Array } | { readonly fault: string } {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unreadable";
    return { fault: `names a file that cannot be read (${code})` };
  }
  try {
    // Of the opened file, so that what was checked is what is read.
    const { mode, size } = fstatSync(file);
    if (process.platform !== "win32" && (mode & FORBIDDEN_MODE) !== 0) {
      const octal = (mode & 0o777).toString(8).padStart(4, "0");
      return { fault: `names a file of mode ${octal}: others can read or change it; chmod 0400` };
    }
    if (size > MAX_FILE_BYTES) return { fault: "names a file that is longer than a key" };
    const text = readFileSync(file, "latin1").replace(/\r?\n$/, "");
    if (HEX_KEY.test(text)) return { key: Buffer.from(text, "hex") };
    return { fault: "names a file that is not one line of 32, 48 or 64 hexadecimal digits" };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unreadable";
    return { fault: `names a file that cannot be read (${code})` };
  } finally {
    closeSync(file);
  }
}
