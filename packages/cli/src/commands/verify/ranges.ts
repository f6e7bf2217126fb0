// Which ids a number of ranges share. Pure.
import { invalidField } from "@idmint/core";

/** Ids base, base + increment, …: `count` of them. */
export interface IdRange {
  readonly base: bigint;
  readonly count: bigint;
  readonly increment: bigint;
}

/** Ids that more than one range has. */
export interface Overlap {
  readonly first: bigint;
  readonly last: bigint;
}

export interface Summary {
  /** Ids of all ranges, each counted as often as a range has it. */
  readonly ids: bigint;
  readonly lowest: bigint;
  readonly highest: bigint;
  /** The first few. */
  readonly overlaps: readonly Overlap[];
  readonly overlapCount: number;
}

/** Neighbours count as one. Each takes 16 bytes, and as many again while they are sorted. */
const MAX_RANGES = 20_000_000;
/** Ticket tags have at most 64 slots; what servers are told by others may have more. */
const MAX_MODULUS = 65_536n;
const MAX_SHOWN = 20;
const ID_SPACE = 2n ** 63n;

/** Ranges that are held at once, over all tags. */
export class Budget {
  #left: number;

  constructor(ranges: number = MAX_RANGES) {
    this.#left = ranges;
  }

  take(): void {
    if (this.#left-- > 0) return;
    throw invalidField(
      "FILE",
      `has more than ${MAX_RANGES} separate ranges: verify some tags at a time with --tag, or sort each file by id`,
    );
  }
}

/**
 * The ids of one tag and period. What comes one after the other is joined, so a history of ids in order takes little.
 *
 * INVARIANT: two ranges share an id exactly when they overlap as intervals, because all of them are kept as intervals
 * without holes. A range with an increment is one within the ids of its residue: with the least common multiple M of all
 * increments, id → (id mod M, id div M) maps it to an interval, and nothing else to the same place. So ranges with
 * holes are turned into places at the end, when M is known, and ranges without holes into M intervals.
 */
export class IdRanges {
  readonly #budget: Budget;
  readonly #whole: Intervals;
  readonly #stepped: IdRange[] = [];
  #ids = 0n;
  #lowest = ID_SPACE;
  #highest = 0n;

  constructor(budget: Budget) {
    this.#budget = budget;
    this.#whole = new Intervals(budget);
  }

  add(range: IdRange): void {
    const { base, count, increment } = range;
    const last = base + (count - 1n) * increment;
    this.#ids += count;
    if (base < this.#lowest) this.#lowest = base;
    if (last > this.#highest) this.#highest = last;
    if (increment === 1n || count === 1n) return this.#whole.add(base, last);
    this.#budget.take();
    this.#stepped.push(range);
  }

  summary(): Summary {
    const modulus = this.#modulus();
    const all = modulus === 1n ? this.#whole : this.#placed(modulus);
    const { overlaps, count } = all.overlaps();
    const size = sizeOf(modulus);
    // The place of an id, back to the id.
    const idAt = (place: bigint): bigint => (place % size) * modulus + place / size;
    return {
      ids: this.#ids,
      lowest: this.#lowest,
      highest: this.#highest,
      overlapCount: count,
      overlaps:
        modulus === 1n
          ? overlaps
          : overlaps.map(({ first, last }) => ({ first: idAt(first), last: idAt(last) })),
    };
  }

  #modulus(): bigint {
    let modulus = 1n;
    for (const { increment } of this.#stepped) {
      modulus = (modulus / gcd(modulus, increment)) * increment;
      if (modulus > MAX_MODULUS) {
        throw invalidField(
          "FILE",
          `has segments of one tag whose increments have a common multiple above ${MAX_MODULUS}`,
        );
      }
    }
    return modulus;
  }

  #placed(modulus: bigint): Intervals {
    const size = sizeOf(modulus);
    const placed = new Intervals(this.#budget);
    /** Those ids of a range that have one residue: a step of the modulus between them. */
    const place = (first: bigint, last: bigint): void => {
      const start = (first % modulus) * size;
      placed.add(start + first / modulus, start + last / modulus);
    };
    const placeAll = ({ base, count, increment }: IdRange): void => {
      const residues = modulus / increment;
      for (let at = 0n; at < residues && at < count; at++) {
        const first = base + at * increment;
        const more = (count - 1n - at) / residues;
        place(first, first + more * modulus);
      }
    };
    for (const range of this.#stepped) placeAll(range);
    for (const [first, last] of this.#whole.all()) {
      placeAll({ base: first, count: last - first + 1n, increment: 1n });
    }
    return placed;
  }
}

/** Places of one residue; with one that no id has, so that ranges of two residues never touch. */
function sizeOf(modulus: bigint): bigint {
  return ID_SPACE / modulus + 2n;
}

function gcd(a: bigint, b: bigint): bigint {
  return b === 0n ? a : gcd(b, a % b);
}

/** Intervals of numbers below 2^63 + 2^16, and where they overlap. */
class Intervals {
  readonly #budget: Budget;
  #firsts = new BigUint64Array(4);
  #lasts = new BigUint64Array(4);
  #length = 0;
  #open = false;
  #first = 0n;
  #last = 0n;

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  add(first: bigint, last: bigint): void {
    if (this.#open && first === this.#last + 1n) {
      this.#last = last;
      return;
    }
    this.#close();
    this.#budget.take();
    [this.#open, this.#first, this.#last] = [true, first, last];
  }

  *all(): Generator<readonly [first: bigint, last: bigint]> {
    this.#close();
    for (let at = 0; at < this.#length; at++) {
      yield [this.#firsts[at] ?? 0n, this.#lasts[at] ?? 0n];
    }
  }

  /**
   * First and last ids are sorted each for themselves: at any id, the intervals begun less those ended say how many have
   * it. Typed arrays of numbers are sorted without a call for each pair.
   */
  overlaps(): { readonly overlaps: readonly Overlap[]; readonly count: number } {
    this.#close();
    const firsts = this.#firsts.subarray(0, this.#length).toSorted();
    const lasts = this.#lasts.subarray(0, this.#length).toSorted();
    const overlaps: Overlap[] = [];
    let count = 0;
    let depth = 0;
    let sharedFrom = 0n;
    for (let begun = 0, ended = 0; ended < lasts.length;) {
      const first = firsts[begun];
      const last = lasts[ended] ?? 0n;
      // An interval that begins where another ends shares that id.
      if (first !== undefined && first <= last) {
        begun++;
        if (++depth === 2) sharedFrom = first;
        continue;
      }
      ended++;
      if (--depth !== 1) continue;
      count++;
      if (overlaps.length < MAX_SHOWN) overlaps.push({ first: sharedFrom, last });
    }
    return { overlaps, count };
  }

  #close(): void {
    if (!this.#open) return;
    this.#open = false;
    if (this.#length === this.#firsts.length) {
      this.#firsts = grown(this.#firsts);
      this.#lasts = grown(this.#lasts);
    }
    this.#firsts[this.#length] = this.#first;
    this.#lasts[this.#length] = this.#last;
    this.#length++;
  }
}

function grown(array: BigUint64Array<ArrayBuffer>): BigUint64Array<ArrayBuffer> {
  const larger = new BigUint64Array(array.length * 2);
  larger.set(array);
  return larger;
}

/** Whether a range has an id. */
export function has({ base, count, increment }: IdRange, id: bigint): boolean {
  const at = id - base;
  return at >= 0n && at % increment === 0n && at / increment < count;
}
