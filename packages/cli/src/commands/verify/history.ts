import { closeSync, openSync, readSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import { invalidField, MAX_ID } from "@idmint/core";
import { plain } from "../../process/plain.ts";
import type { IdRange } from "./ranges.ts";

/** One line of a history: ids of one tag, and who says that they have them. */
export interface Row {
  readonly tag: string;
  /** Empty without periods. */
  readonly period: string;
  readonly ranges: readonly IdRange[];
  /** As written; for people. */
  readonly who: string;
  readonly time: string;
}

const CHUNK_BYTES = 1_048_576;
/** 10,000 ids as texts are 220 kB. */
const MAX_LINE_BYTES = 4 * CHUNK_BYTES;
const MAX_TEXT = 256;

function readable<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const why = cause instanceof Error && "code" in cause ? String(cause.code) : "unreadable";
    throw invalidField("FILE", `names a file that cannot be read (${why}): ${file}`);
  }
}

/** Calls `each` for every line of a file that is not empty, in order. The line is counted from 1. */
export async function eachLine(
  file: string,
  signal: Pick<AbortSignal, "throwIfAborted">,
  each: (text: string, line: number) => void,
): Promise<void> {
  const descriptor = readable(file, () => openSync(file, "r"));
  try {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    let rest = Buffer.alloc(0);
    let line = 0;
    const tell = (bytes: Buffer): void => {
      line++;
      const text = bytes.toString().trim();
      if (text !== "") each(text, line);
    };
    for (;;) {
      // A folder can be opened, and not be read.
      const read = readable(file, () => readSync(descriptor, chunk));
      if (read === 0) break;
      const bytes = Buffer.concat([rest, chunk.subarray(0, read)]);
      let start = 0;
      for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
        tell(bytes.subarray(start, end));
        start = end + 1;
      }
      rest = bytes.subarray(start);
      if (rest.length > MAX_LINE_BYTES) throw invalidLine(file, line + 1, "is longer than 4 MiB");
      // So that Ctrl-C is heard.
      await turn();
      signal.throwIfAborted();
    }
    if (rest.length > 0) tell(rest);
  } finally {
    closeSync(descriptor);
  }
}

function invalidLine(file: string, line: number, what: string): Error {
  return invalidField(`${file}:${line}`, what);
}

/** Reads a line, or throws an INVALID_ARGUMENT that names it. Fields that it does not know are passed over. */
export function parseRow(text: string, file: string, line: number): Row {
  const refuse = (what: string): Error => invalidLine(file, line, what);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw refuse("is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refuse('must be an object such as {"tag":"orders","id":"7"}');
  }
  const { tag, period = "", who = "", time = "", ...more } = value as Record<string, unknown>;
  if (typeof tag !== "string" || tag === "") throw refuse("needs the field tag, a text");
  for (const [name, its] of Object.entries({ tag, period, who, time })) {
    if (typeof its !== "string" || its.length > MAX_TEXT) {
      throw refuse(`has a field ${name} that is not a text of up to ${MAX_TEXT} characters`);
    }
  }
  const ranges = rangesOf(more, refuse);
  return { tag, period: String(period), who: String(who), time: String(time), ranges };
}

function rangesOf(
  { id, ids, segments }: Readonly<Record<string, unknown>>,
  refuse: (what: string) => Error,
): readonly IdRange[] {
  const given = [id, ids, segments].filter((field) => field !== undefined);
  if (given.length !== 1) throw refuse("needs exactly one of the fields id, ids and segments");
  if (id !== undefined) return [single(id, "id", refuse)];
  const list = ids ?? segments;
  if (!Array.isArray(list)) throw refuse("has a field ids or segments that is not a list");
  if (ids !== undefined) return list.map((each: unknown) => single(each, "ids", refuse));
  return list.map((segment: unknown) => segmentOf(segment, refuse));
}

function single(value: unknown, field: string, refuse: (what: string) => Error): IdRange {
  return { base: whole(value, field, MAX_ID, refuse), count: 1n, increment: 1n };
}

function segmentOf(value: unknown, refuse: (what: string) => Error): IdRange {
  if (typeof value !== "object" || value === null) throw refuse("has a segment that is no object");
  const { base, count, increment = 1 } = value as Record<string, unknown>;
  const range = {
    base: whole(base, "base", MAX_ID, refuse),
    count: whole(count, "count", MAX_ID, refuse),
    increment: whole(increment, "increment", MAX_ID, refuse),
  };
  if (range.count < 1n || range.increment < 1n) {
    throw refuse("has a segment whose count or increment is below 1");
  }
  if (range.base + (range.count - 1n) * range.increment > MAX_ID) {
    throw refuse(`has a segment that goes past ${MAX_ID}`);
  }
  return range;
}

/** An id as a text of digits, as JSON of the API has it, or as a number that lost nothing. */
function whole(
  value: unknown,
  field: string,
  max: bigint,
  refuse: (what: string) => Error,
): bigint {
  const isExact = typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
  const isDigits = typeof value === "string" && /^\d{1,19}$/.test(value);
  const number = isExact || isDigits ? BigInt(value) : undefined;
  if (number !== undefined && number <= max) return number;
  const shown = typeof value === "string" ? `, got "${plain(value.slice(0, 40))}"` : "";
  throw refuse(
    `has a field ${field} that is not a whole number from 0 to ${max} (as a text above 2^53)${shown}`,
  );
}
