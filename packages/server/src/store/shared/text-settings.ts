import type { TagKind } from "@idmint/core/kinds";
import type { Format, KeyCheck, TagSettings, Unguessable } from "@idmint/core/server";
import { schemaMismatch } from "./failures.ts";
import { settingsFromText, settingsText } from "./settings.ts";

/**
 * The content of the column `settings`: the settings of the kind, and how ids are written if they are not plain
 * numbers.
 */
type Written = Pick<TagSettings, "kind" | "format" | "unguessable">;

/** Most texts that are remembered: many tags have the same settings. */
const MAX_READ = 1_000;
/** Settings by kind and text, as they were read. Nobody changes them. */
const read = new Map<string, Written>();
/** The texts of settings without a format or a key that were read. */
const texts = new WeakMap<TagKind, string>();

/** The column `settings` of a tag: JSON without spaces, its fields in a fixed order. */
export function columnOf({ kind, format, unguessable }: Written): string {
  const text = texts.get(kind) ?? settingsText(kind);
  if (format === undefined && unguessable === undefined) return text;
  return JSON.stringify({
    ...(JSON.parse(text) as object),
    ...(format === undefined ? {} : { format: format.template }),
    ...(unguessable === undefined ? {} : { unguessable: unguessableText(unguessable) }),
  });
}

/**
 * INVARIANT: what is read is what was written. Throws SCHEMA_MISMATCH for anything else, as `settingsFromText` does. Only what was
 * read is remembered, so whatever is refused is looked at each time.
 */
export function columnFrom(tag: string, kind: string, text: string): Written {
  // No kind has a line break, nor a text that was read.
  const key = `${kind}\n${text}`;
  const known = read.get(key);
  if (known !== undefined) return known;
  const written = writtenFrom(tag, kind, text);
  if (read.size >= MAX_READ) read.clear();
  read.set(key, written);
  return written;
}

function writtenFrom(tag: string, kind: string, text: string): Written {
  const fields = fieldsOf(text);
  if (fields === undefined || !("format" in fields || "unguessable" in fields)) {
    const its = settingsFromText(tag, kind, text);
    texts.set(its, text);
    return { kind: its };
  }
  const { format, unguessable, ...own } = fields;
  const written: Written = {
    kind: settingsFromText(tag, kind, JSON.stringify(own)),
    ...(format === undefined ? {} : { format: formatOf(tag, format) }),
    ...(unguessable === undefined ? {} : { unguessable: unguessableOf(tag, unguessable) }),
  };
  if (columnOf(written) !== text) throw spoiled(tag);
  return written;
}

function fieldsOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function formatOf(tag: string, template: unknown): Format {
  if (typeof template === "string") return { template };
  throw spoiled(tag);
}

function unguessableText({ keyId, keyDigits, keys }: Unguessable): object {
  return { keyId, keyDigits, keys: keys.map((key) => [key.keyId, key.check]) };
}

function unguessableOf(tag: string, value: unknown): Unguessable {
  const { keyId, keyDigits, keys } = (value ?? {}) as Readonly<Record<string, unknown>>;
  if (isNumber(keyId) && isNumber(keyDigits) && Array.isArray(keys)) {
    return { keyId, keyDigits, keys: keys.map((key) => keyCheckOf(tag, key)) };
  }
  throw spoiled(tag);
}

function keyCheckOf(tag: string, value: unknown): KeyCheck {
  const [keyId, check] = Array.isArray(value) ? (value as unknown[]) : [];
  if (isNumber(keyId) && typeof check === "string") return { keyId, check };
  throw spoiled(tag);
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}

function spoiled(tag: string): Error {
  return schemaMismatch(
    `the row of tag "${tag}" was changed by hand or written by another release: its format or key`,
  );
}
