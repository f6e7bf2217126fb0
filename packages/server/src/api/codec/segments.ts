import type { Segment } from "@idmint/proto";
import { numberSize, varintSize, writeNumber, writeVarint } from "./varint.ts";

/** Field 1 of answers that have segments, and the fields of a segment. */
const SEGMENTS = 0x0a;
const BASE = 0x08;
const INCREMENT = 0x10;
const COUNT = 0x18;

/** Bytes of the field `segments`, which is field 1; -1: a segment is not as they are, and only the generated code writes it. */
export function segmentsSize(segments: readonly Segment[]): number {
  let size = 0;
  for (const segment of segments) {
    if (segment.base <= 0n || segment.increment <= 0 || segment.count <= 0) return -1;
    const own = segmentSize(segment);
    size += 1 + numberSize(own) + own;
  }
  return size;
}

/** Answers where they end. */
export function writeSegments(
  segments: readonly Segment[],
  bytes: Uint8Array,
  begin: number,
): number {
  let at = begin;
  for (const segment of segments) {
    bytes[at] = SEGMENTS;
    at = writeNumber(bytes, at + 1, segmentSize(segment));
    bytes[at] = BASE;
    at = writeVarint(bytes, at + 1, segment.base);
    bytes[at] = INCREMENT;
    at = writeNumber(bytes, at + 1, segment.increment);
    bytes[at] = COUNT;
    at = writeNumber(bytes, at + 1, segment.count);
  }
  return at;
}

function segmentSize({ base, increment, count }: Segment): number {
  return 3 + varintSize(base) + numberSize(increment) + numberSize(count);
}
