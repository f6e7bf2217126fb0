import { lastOf, type Segment } from "./segment.ts";

/** How many ranges are remembered of a tag, unless told otherwise. */
const MAX_RANGES = 1_000;

/** Ids first, first + increment, … last. */
interface Range {
  first: bigint;
  last: bigint;
  readonly increment: number;
  /** Number of the answer that added to it last. */
  seenAt: number;
}

/**
 * Remembers which ids came in, so that none is believed twice: neighbouring ids as one range, the last 1,000 ranges. It
 * costs about 100 bytes a range. Whoever is alone on a tag needs one range for all of its ids.
 *
 * INVARIANT: `#solid` is ascending, and no two of its ranges touch or overlap. Ranges with an increment above 1 may
 * interleave, so they are kept apart, in `#combs`, in no order.
 */
export class SeenRanges {
  readonly #limit: number;
  #solid: Range[] = [];
  #combs: Range[] = [];
  #answers = 0;

  constructor(limit: number = MAX_RANGES) {
    this.#limit = limit;
  }

  /**
   * Takes note of the segments of one answer. Answers an id of it that came in before or stands in it twice; undefined:
   * there is none, as far as is remembered.
   */
  admit(segments: readonly Segment[]): bigint | undefined {
    this.#answers++;
    for (const segment of segments) {
      const range = rangeOf(segment, this.#answers);
      const repeated = this.#find(range);
      if (repeated !== undefined) return repeated;
      if (range.increment === 1) this.#addSolid(range);
      else this.#addComb(range);
    }
    // Only now, so that all segments of an answer are compared with each other.
    this.#solid = forgetOldest(this.#solid, this.#limit);
    this.#combs = forgetOldest(this.#combs, this.#limit);
    return undefined;
  }

  #find(range: Range): bigint | undefined {
    for (let at = this.#placeOf(range.first); at < this.#solid.length; at++) {
      const known = this.#solid[at];
      if (known === undefined || known.first > range.last) break;
      const id = commonId(known, range);
      if (id !== undefined) return id;
    }
    for (const known of this.#combs) {
      const id = commonId(known, range);
      if (id !== undefined) return id;
    }
    return undefined;
  }

  /** Place of the first solid range that ends at this id or behind it. */
  #placeOf(id: bigint): number {
    let from = 0;
    let to = this.#solid.length;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((this.#solid[middle]?.last ?? 0n) < id) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  #addSolid(range: Range): void {
    const at = this.#placeOf(range.first);
    const before = this.#solid[at - 1];
    const after = this.#solid[at];
    const extendsBefore = before !== undefined && before.last + 1n === range.first;
    const extendsAfter = after !== undefined && range.last + 1n === after.first;
    if (extendsBefore) {
      before.last = extendsAfter ? after.last : range.last;
      before.seenAt = range.seenAt;
      if (extendsAfter) this.#solid.splice(at, 1);
    } else if (extendsAfter) {
      after.first = range.first;
      after.seenAt = range.seenAt;
    } else {
      this.#solid.splice(at, 0, range);
    }
  }

  #addComb(range: Range): void {
    const step = BigInt(range.increment);
    const before = this.#combs.find(
      (known) => known.increment === range.increment && known.last + step === range.first,
    );
    if (before === undefined) {
      this.#combs.push(range);
    } else {
      before.last = range.last;
      before.seenAt = range.seenAt;
    }
  }
}

/** An id that two segments have in common; undefined when they have none. */
export function commonIdOf(a: Segment, b: Segment): bigint | undefined {
  return commonId(rangeOf(a, 0), rangeOf(b, 0));
}

function rangeOf(segment: Segment, seenAt: number): Range {
  const increment = segment.count === 1 ? 1 : segment.increment;
  return { first: segment.base, last: lastOf(segment), increment, seenAt };
}

/** Keeps the newest, in their order; some more than the limit for a while, so that it need not look each time. */
function forgetOldest(ranges: Range[], limit: number): Range[] {
  if (ranges.length <= limit + Math.ceil(limit / 4)) return ranges;
  const oldest = ranges.map(({ seenAt }) => seenAt).toSorted((a, b) => b - a)[limit - 1] ?? 0;
  let spare = limit - ranges.filter(({ seenAt }) => seenAt > oldest).length;
  return ranges.filter(({ seenAt }) => seenAt > oldest || (seenAt === oldest && spare-- > 0));
}

/** The smallest id in both, by the Chinese remainder theorem where they interleave. */
function commonId(a: Range, b: Range): bigint | undefined {
  const from = a.first > b.first ? a.first : b.first;
  const to = a.last < b.last ? a.last : b.last;
  if (from > to) return undefined;
  if (a.increment === 1 && b.increment === 1) return from;
  const [stepA, stepB] = [BigInt(a.increment), BigInt(b.increment)];
  const { divisor, inverse } = divide(stepA, stepB);
  const apart = b.first - a.first;
  if (apart % divisor !== 0n) return undefined;
  const period = (stepA / divisor) * stepB;
  const any = a.first + stepA * ((apart / divisor) * inverse);
  const id = from + modulo(any - from, period);
  return id <= to ? id : undefined;
}

/** Greatest common divisor of two steps, and the inverse of `a / divisor` modulo `b / divisor`. */
function divide(a: bigint, b: bigint): { divisor: bigint; inverse: bigint } {
  let [rest, next] = [a, b];
  let [inverse, nextInverse] = [1n, 0n];
  while (next !== 0n) {
    const quotient = rest / next;
    [rest, next] = [next, rest - quotient * next];
    [inverse, nextInverse] = [nextInverse, inverse - quotient * nextInverse];
  }
  return { divisor: rest, inverse };
}

function modulo(value: bigint, by: bigint): bigint {
  return ((value % by) + by) % by;
}
