// Nothing but a return stands behind a hot loop, here and where ids are taken: V8 compiles a loop while it runs for the
// first time, does not know what comes after it, and would throw the compiled code away again and again there.

/** Ids that are taken before the event loop has its turn: so many that turns cost nothing, so few that loads get through. */
export const TURN = 20_000;

/**
 * The ids of one turn, as they were taken. Kinds of ids have an array each, so that each is written as it comes; they are
 * looked at after the turn, since comparing each with the last one there and then costs more than taking it.
 */
export class TurnOfIds {
  readonly numbers: Float64Array = new Float64Array(TURN);
  readonly bigints: BigUint64Array = new BigUint64Array(TURN);
  readonly #halves = new Uint32Array(this.bigints.buffer);

  /** Makes `numbers` of the first `count` of `bigints`, which are below 2^53. The halves are those of a little-endian. Answers the count. */
  unpack(count: number): number {
    const { numbers } = this;
    const halves = this.#halves;
    for (let at = 0; at < count; at++) {
      numbers[at] = (halves[2 * at + 1] ?? 0) * 2 ** 32 + (halves[2 * at] ?? 0);
    }
    return count;
  }
}

/**
 * Ids in stretches: each id continues the last stretch or begins another one. So no id needs to be kept, and whether any
 * came twice is seen by the stretches alone.
 */
export class Stretches {
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  /** The id after the last one. */
  #next = -1;

  get count(): number {
    return this.#starts.length;
  }

  /** Looks at the first `count` of these ids. */
  see(ids: Float64Array, count: number): void {
    this.#next = this.#seeFrom(this.#next, ids, count);
  }

  /** Pairs of stretches that overlap: ids that came twice. */
  overlaps(): number {
    const ends = [...this.#ends, this.#next];
    const all = this.#starts.map((start, at) => ({ start, end: ends[at] ?? Number.NaN }));
    const sorted = all.toSorted((a, b) => a.start - b.start);
    return sorted.filter(({ start }, at) => start < (sorted[at - 1]?.end ?? 0)).length;
  }

  #seeFrom(first: number, ids: Float64Array, count: number): number {
    let next = first;
    for (let at = 0; at < count; at++) {
      const id = ids[at] ?? Number.NaN;
      if (id !== next) this.#begin(id, next);
      next = id + 1;
    }
    return next;
  }

  #begin(start: number, endOfLast: number): void {
    if (this.#starts.length > 0) this.#ends.push(endOfLast);
    this.#starts.push(start);
  }
}
