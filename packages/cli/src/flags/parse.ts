import { invalidField, MAX_ID, MAX_SAFE_ID } from "@idmint/core";
import { durationFrom, durationText } from "@idmint/core/kinds";

/** Reads one value of the command line, or throws an INVALID_ARGUMENT that names the field and its limits. */
export type Parser<T> = (text: string) => T;

const MAX_INT32 = 2n ** 31n - 1n;

/** A whole number in decimal digits, within its limits. Nothing is rounded or clamped. */
export function wholeNumber(
  field: string,
  { min, max }: { min: bigint; max: bigint },
): Parser<bigint> {
  return (text) => {
    const value = /^-?\d{1,30}$/.test(text) ? BigInt(text) : undefined;
    if (value === undefined || value < min || value > max) {
      throw invalidField(field, `must be a whole number from ${min} to ${max}, got "${text}"`);
    }
    return value;
  };
}

/** A whole number that a JavaScript number holds exactly. */
export function smallNumber(
  field: string,
  { min, max }: { min: number; max: number },
): Parser<number> {
  const parse = wholeNumber(field, { min: BigInt(min), max: BigInt(max) });
  return (text) => Number(parse(text));
}

/** An id: 1 … 2^63 − 1. */
export function id(field: string): Parser<bigint> {
  return wholeNumber(field, { min: 1n, max: MAX_ID });
}

const CEILINGS: Readonly<Record<string, bigint>> = {
  int32: MAX_INT32,
  js: MAX_SAFE_ID,
  int64: MAX_ID,
};

/** A ceiling: an id, or the name of the type that must hold it. */
export function ceiling(field: string): WordParser<bigint> {
  const parse: Parser<bigint> = (text) => {
    const named = Object.hasOwn(CEILINGS, text) ? CEILINGS[text] : undefined;
    if (named !== undefined) return named;
    if (!/^-?\d/.test(text)) {
      throw invalidField(field, `must be an id or one of int32, js, int64, got "${text}"`);
    }
    return id(field)(text);
  };
  return Object.assign(parse, { words: Object.keys(CEILINGS) });
}

/** A parser that tells which words it takes, for those who complete them. */
export type WordParser<T> = Parser<T> & { readonly words: readonly string[] };

/** One of a few words. `words` maps what is typed to its meaning. */
export function oneOf<T>(field: string, words: Readonly<Record<string, T>>): WordParser<T> {
  const known = Object.keys(words);
  const parse: Parser<T> = (text) => {
    const value = Object.hasOwn(words, text) ? words[text] : undefined;
    if (value === undefined) {
      throw invalidField(field, `must be one of ${known.join(", ")}, got "${text}"`);
    }
    return value;
  };
  return Object.assign(parse, { words: known });
}

/** One of a few words, which mean themselves. */
export function oneWord<Word extends string>(
  field: string,
  words: readonly Word[],
): WordParser<Word> {
  return oneOf<Word>(field, Object.fromEntries(words.map((word) => [word, word])));
}

const MAX_DURATION_MS = 24 * 3_600_000;

/** A length of time with its unit, in milliseconds: 500ms, 90s, 15m, 24h, 400d. */
export function duration(
  field: string,
  { minMs, maxMs }: { minMs: number; maxMs: number } = { minMs: 1, maxMs: MAX_DURATION_MS },
): Parser<number> {
  return (text) => {
    const value = durationFrom(text);
    if (value === undefined || value < minMs || value > maxMs) {
      const limits = `from ${durationText(minMs)} to ${durationText(maxMs)}`;
      throw invalidField(
        field,
        `must be a time such as 500ms, 90s or 15m, ${limits}, got "${text}"`,
      );
    }
    return value;
  };
}

/** A time in UTC: 2026-01-01, or 2026-01-01T08:30:00Z with milliseconds if wished. */
export function time(field: string): Parser<Date> {
  return (text) => {
    const isForm = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{3})?Z)?$/.test(text);
    const value = new Date(isForm ? text : Number.NaN);
    // Without this, 2026-02-30 would be read as a day in March.
    const isThere = isForm && !Number.isNaN(value.getTime());
    if (!isThere || !value.toISOString().startsWith(text.replace(/(?:\.\d{3})?Z$/, ""))) {
      const example = "2026-01-01 or 2026-01-01T08:30:00Z";
      throw invalidField(field, `must be a time in UTC such as ${example}, got "${text}"`);
    }
    return value;
  };
}

/**
 * Where the time of a layout begins: a time in UTC, or milliseconds since 1970 as other generators have it. Shorter numbers
 * are refused: they are years or seconds.
 */
export function timeOrigin(field: string): Parser<Date> {
  const parse = time(field);
  return (text) => {
    if (/^(?:0|[1-9]\d{11,12})$/.test(text)) return new Date(Number(text));
    if (!/^\d+$/.test(text)) return parse(text);
    const examples = "2026-01-01, or milliseconds since 1970 such as 1767225600000";
    throw invalidField(field, `must be a time in UTC such as ${examples}, got "${text}"`);
  };
}

/** The address of a server: host:port, or what gRPC names with a scheme of its own (dns:, unix:). */
export function address(field: string): Parser<string> {
  return (text) => {
    if (/^(?:dns|unix):\S+$/.test(text)) return text;
    const match = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})$/.exec(text);
    const port = Number(match?.[1]);
    if (!(port >= 1 && port <= 65_535)) {
      throw invalidField(field, `must be host:port such as 127.0.0.1:7600, got "${text}"`);
    }
    return text;
  };
}
