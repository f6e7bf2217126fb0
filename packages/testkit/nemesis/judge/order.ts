// Whether ids rise as their tag declares.
import type { HistoryRow } from "../callers/config.ts";

/** The ids of an answer, from the first to the last. */
interface Place {
  readonly period: string;
  readonly first: bigint;
  readonly last: bigint;
}

interface Step {
  readonly to: number;
  readonly highest: Place;
  readonly row: HistoryRow;
}

export interface Inversion {
  /** Answered before the other one was asked for, and not below it. */
  readonly before: HistoryRow;
  readonly after: HistoryRow;
}

/** No call takes longer. What is older than this counts only by the highest id. */
const LONGEST_US = 120_000_000;
const TRIM_AT = 4_096;

/**
 * The answers of one scope: of a tag over all callers, or of one client. To be told them in the order in which they came.
 *
 * INVARIANT: an answer is judged by the highest id of all that came before it was asked for. Its `from` lies before its `to`, so all
 * of them were told already. The steps hold, for each time, the highest id so far; they only rise.
 */
export class OrderCheck {
  #steps: Step[] = [];

  /** Answers what is out of order. */
  add(row: HistoryRow): Inversion | undefined {
    const place = placeOf(row);
    const before = this.#highestBefore(row.from);
    const newest = this.#steps.at(-1);
    if (newest === undefined || isAbove(place, newest.highest)) {
      this.#steps.push({ to: row.to, highest: place, row });
      if (this.#steps.length > TRIM_AT) this.#trim(row.to - LONGEST_US);
    }
    if (before === undefined || startsAbove(place, before.highest)) return undefined;
    return { before: before.row, after: row };
  }

  #highestBefore(from: number): Step | undefined {
    let [low, high] = [0, this.#steps.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#steps[middle]?.to ?? Infinity) < from) low = middle + 1;
      else high = middle;
    }
    return this.#steps[low - 1];
  }

  /** The last one before a time says what was highest then. */
  #trim(before: number): void {
    const kept = this.#steps.findIndex(({ to }) => to >= before);
    if (kept > 1) this.#steps = this.#steps.slice(kept - 1);
  }
}

function placeOf({ period = "", id, segments = [] }: HistoryRow): Place {
  if (id !== undefined) return { period, first: BigInt(id), last: BigInt(id) };
  const firsts = segments.map(({ base }) => BigInt(base));
  const lasts = segments.map(
    ({ base, count, increment }) => BigInt(base) + BigInt(count - 1) * BigInt(increment),
  );
  return {
    period,
    first: firsts.reduce((low, each) => (each < low ? each : low)),
    last: lasts.reduce((high, each) => (each > high ? each : high)),
  };
}

function isAbove(one: Place, other: Place): boolean {
  return one.period > other.period || (one.period === other.period && one.last > other.last);
}

function startsAbove(one: Place, other: Place): boolean {
  return one.period > other.period || (one.period === other.period && one.first > other.last);
}
