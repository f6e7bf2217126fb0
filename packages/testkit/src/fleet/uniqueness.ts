import { readRecords } from "./record.ts";

/** Ids that more than one record has, and who received them. */
interface Repeat {
  readonly first: bigint;
  readonly last: bigint;
  /** Lines for people: file, stream, time and range of each record that has one of them; at most 10. */
  readonly owners: readonly string[];
}

/** An id that a stream received after a higher one. */
interface Inversion {
  readonly file: string;
  readonly stream: number;
  readonly after: bigint;
  readonly id: bigint;
}

/** What all callers together received. */
export interface Verdict {
  /** Ids received, repeats included. */
  readonly received: number;
  /** Different ids received. */
  readonly distinct: number;
  /** `received − distinct`. */
  readonly repeated: number;
  /** The first few ranges that were received more than once. */
  readonly repeats: readonly Repeat[];
  /** Lowest and highest id received; 0 and −1 when there was none. */
  readonly lowest: bigint;
  readonly highest: bigint;
  /** Stretches between lowest and highest that nobody received, and how many ids they hold. */
  readonly gaps: number;
  readonly missing: bigint;
  readonly longestGap: bigint;
  /** Streams that received an id after a higher one: how often, and the first few. */
  readonly inversions: number;
  readonly firstInversions: readonly Inversion[];
  /** Calls that failed, and how many ids they had asked for. */
  readonly callsInVain: number;
  readonly idsInVain: number;
  readonly records: number;
  /** When the first and the last id were received; milliseconds since 1970. */
  readonly fromMs: number;
  readonly untilMs: number;
  /** Answers received in each second since `fromMs`. */
  readonly answersPerSecond: readonly number[];
}

const MAX_REPEATS = 20;
const MAX_OWNERS = 10;
const MAX_INVERSIONS = 20;
/** Ids of segments with an increment above 1 are looked at one by one, up to this many. */
const MAX_SPREAD_IDS = 10_000_000;

/**
 * Whether any id was received twice, over all files of one tag.
 *
 * Neighbouring records of a stream are joined into ranges as they are read. The ends of all ranges are then sorted, the
 * first ids and the last ids each for themselves: at any id, the ranges begun less the ranges ended say how many hold
 * it. So ten million ranges take two native arrays and no object each.
 */
export function judge(files: readonly string[]): Verdict {
  const ranges = new Ranges();
  const tally = new Tally();
  for (const file of files) {
    const streams = new Map<number, Run>();
    for (const record of readRecords(file)) {
      tally.count(record.atMs, record.kind === "received", record.count);
      if (record.kind !== "received") continue;
      const run = runOf(streams, record.stream);
      const last = record.base + BigInt(record.count - 1) * BigInt(record.increment);
      if (record.base <= run.highest)
        tally.inversion(file, record.stream, run.highest, record.base);
      if (last > run.highest) run.highest = last;
      if (record.increment > 1 && record.count > 1) {
        ranges.addSpread(record.base, record.count, record.increment);
      } else if (run.isOpen && record.base === run.last + 1n) {
        run.last = last;
      } else {
        if (run.isOpen) ranges.add(run.first, run.last);
        run.first = record.base;
        run.last = last;
        run.isOpen = true;
      }
    }
    for (const run of streams.values()) if (run.isOpen) ranges.add(run.first, run.last);
  }
  return tally.verdict(ranges.sweep(), files);
}

/** What one stream received in a row, and the highest id it ever received. */
interface Run {
  first: bigint;
  last: bigint;
  isOpen: boolean;
  highest: bigint;
}

function runOf(streams: Map<number, Run>, stream: number): Run {
  const known = streams.get(stream);
  if (known !== undefined) return known;
  const run = { first: 0n, last: 0n, isOpen: false, highest: -1n };
  streams.set(stream, run);
  return run;
}

interface Sweep {
  readonly distinct: bigint;
  readonly repeats: readonly (readonly [first: bigint, last: bigint])[];
  readonly lowest: bigint;
  readonly highest: bigint;
  readonly gaps: number;
  readonly missing: bigint;
  readonly longestGap: bigint;
}

class Ranges {
  #firsts = new BigInt64Array(1_024);
  #lasts = new BigInt64Array(1_024);
  #length = 0;
  #spread = 0;

  add(first: bigint, last: bigint): void {
    if (this.#length === this.#firsts.length) {
      this.#firsts = grown(this.#firsts);
      this.#lasts = grown(this.#lasts);
    }
    this.#firsts[this.#length] = first;
    this.#lasts[this.#length] = last;
    this.#length++;
  }

  addSpread(base: bigint, count: number, increment: number): void {
    this.#spread += count;
    if (this.#spread > MAX_SPREAD_IDS) throw new RangeError("too many ids with an increment");
    for (let at = 0; at < count; at++) {
      const id = base + BigInt(at) * BigInt(increment);
      this.add(id, id);
    }
  }

  sweep(): Sweep {
    const firsts = this.#firsts.subarray(0, this.#length).toSorted();
    const lasts = this.#lasts.subarray(0, this.#length).toSorted();
    const repeats: [bigint, bigint][] = [];
    let distinct = 0n;
    let gaps = 0;
    let missing = 0n;
    let longestGap = 0n;
    let coveredFrom = 0n;
    let repeatedFrom = 0n;
    let previousLast: bigint | undefined;
    let depth = 0;
    for (let begun = 0, ended = 0; ended < lasts.length;) {
      const first = firsts[begun];
      const last = lasts[ended] ?? 0n;
      // A range that begins at the id with which another ends shares that id.
      if (first !== undefined && first <= last) {
        begun++;
        depth++;
        if (depth === 2) repeatedFrom = first;
        if (depth !== 1) continue;
        coveredFrom = first;
        const gap = previousLast === undefined ? 0n : first - previousLast - 1n;
        if (gap > 0n) gaps++;
        missing += gap;
        if (gap > longestGap) longestGap = gap;
        continue;
      }
      ended++;
      depth--;
      if (depth === 1 && repeats.length < MAX_REPEATS) repeats.push([repeatedFrom, last]);
      if (depth !== 0) continue;
      distinct += last - coveredFrom + 1n;
      previousLast = last;
    }
    const lowest = firsts[0] ?? 0n;
    const highest = previousLast ?? -1n;
    return { distinct, repeats, lowest, highest, gaps, missing, longestGap };
  }
}

function grown(array: BigInt64Array<ArrayBuffer>): BigInt64Array<ArrayBuffer> {
  const larger = new BigInt64Array(array.length * 2);
  larger.set(array);
  return larger;
}

class Tally {
  #received = 0;
  #records = 0;
  #callsInVain = 0;
  #idsInVain = 0;
  #inversions = 0;
  #fromMs = Infinity;
  #untilMs = 0;
  readonly #firstInversions: Inversion[] = [];
  readonly #answersAt = new Map<number, number>();

  count(atMs: number, isReceived: boolean, count: number): void {
    this.#records++;
    if (!isReceived) {
      this.#callsInVain++;
      this.#idsInVain += count;
      return;
    }
    this.#received += count;
    this.#fromMs = Math.min(this.#fromMs, atMs);
    this.#untilMs = Math.max(this.#untilMs, atMs);
    const second = Math.floor(atMs / 1_000);
    this.#answersAt.set(second, (this.#answersAt.get(second) ?? 0) + 1);
  }

  inversion(file: string, stream: number, after: bigint, id: bigint): void {
    this.#inversions++;
    if (this.#firstInversions.length < MAX_INVERSIONS) {
      this.#firstInversions.push({ file, stream, after, id });
    }
  }

  verdict(sweep: Sweep, files: readonly string[]): Verdict {
    const distinct = Number(sweep.distinct);
    return {
      received: this.#received,
      distinct,
      repeated: this.#received - distinct,
      repeats: sweep.repeats.map(([first, last]) => ({
        first,
        last,
        owners: ownersOf(files, first, last),
      })),
      lowest: sweep.lowest,
      highest: sweep.highest,
      gaps: sweep.gaps,
      missing: sweep.missing,
      longestGap: sweep.longestGap,
      inversions: this.#inversions,
      firstInversions: this.#firstInversions,
      callsInVain: this.#callsInVain,
      idsInVain: this.#idsInVain,
      records: this.#records,
      fromMs: this.#fromMs,
      untilMs: this.#untilMs,
      answersPerSecond: this.#perSecond(),
    };
  }

  #perSecond(): readonly number[] {
    if (this.#answersAt.size === 0) return [];
    const from = Math.floor(this.#fromMs / 1_000);
    const seconds = Math.floor(this.#untilMs / 1_000) - from + 1;
    return Array.from({ length: seconds }, (_, at) => this.#answersAt.get(from + at) ?? 0);
  }
}

function ownersOf(files: readonly string[], first: bigint, last: bigint): string[] {
  const owners: string[] = [];
  for (const file of files) {
    for (const { kind, base, count, increment, stream, atMs } of readRecords(file)) {
      if (kind !== "received") continue;
      const end = base + BigInt(count - 1) * BigInt(increment);
      if (base > last || end < first) continue;
      const at = new Date(atMs).toISOString();
      owners.push(`${file} stream ${stream} at ${at}: ${base} … ${end} step ${increment}`);
      if (owners.length === MAX_OWNERS) return owners;
    }
  }
  return owners;
}
