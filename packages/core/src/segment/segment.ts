import { IdmintError } from "../errors.ts";
import { MAX_ID, MAX_SEGMENT_COUNT } from "../limits.ts";

/**
 * An arithmetic progression of ids handed out whole: base, base + increment, …, base + (count − 1) × increment.
 * `base` is a bigint so that ids are exact to 2^63 − 1; `increment` and `count` are integers below 2^31.
 */
export interface Segment {
  readonly base: bigint;
  readonly increment: number;
  readonly count: number;
}

/** A segment, checked: every id of it lies in 0 … 2^63 − 1. Throws RangeError, since a bad segment is a fault of ours. */
export function segmentOf(base: bigint, count: number, increment = 1): Segment {
  if (!Number.isInteger(count) || count < 1 || count > MAX_SEGMENT_COUNT)
    throw new RangeError(`segment count ${count}`);
  if (!Number.isInteger(increment) || increment < 1 || increment >= 2 ** 31) {
    throw new RangeError(`segment increment ${increment}`);
  }
  const segment = { base, increment, count };
  if (base < 0n || lastOf(segment) > MAX_ID)
    throw new RangeError(`segment base ${base} of ${count}`);
  return segment;
}

/** The id at an offset; the offset must be below the count. */
export function idAt(segment: Segment, offset: number): bigint {
  return segment.increment === 1
    ? segment.base + BigInt(offset)
    : segment.base + BigInt(offset) * BigInt(segment.increment);
}

/** The largest id of a segment. */
export function lastOf(segment: Segment): bigint {
  return idAt(segment, segment.count - 1);
}

/** The first id of an answer that has at least one. */
export function firstIdOf(segments: readonly Segment[]): bigint {
  const [first] = segments;
  if (first === undefined) throw new IdmintError("INTERNAL", "an answer without an id");
  return first.base;
}

/** The part of a segment from an offset on, `count` ids long. */
export function slice(segment: Segment, offset: number, count: number): Segment {
  if (offset === 0 && count === segment.count) return segment;
  return segmentOf(idAt(segment, offset), count, segment.increment);
}

/** How many ids several segments hold together. */
export function countOf(segments: readonly Segment[]): number {
  let count = 0;
  for (const segment of segments) count += segment.count;
  return count;
}

/** The ids of several segments, one by one, in order. */
export function* idsOf(segments: Iterable<Segment>): Generator<bigint, void, undefined> {
  for (const segment of segments) {
    for (let offset = 0; offset < segment.count; offset++) yield idAt(segment, offset);
  }
}
