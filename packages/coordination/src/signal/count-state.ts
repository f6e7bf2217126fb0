/** Where a broadcast stands among those of its name. */
export interface Place {
  readonly count: number;
  /** The count of the broadcast before; 0 when there was none. */
  readonly previous: number;
}

/**
 * The count of a name's broadcasts, as one listener knows it: pure. Counts only grow, also over a Redis that lost its data
 * (see MINT), and jump; 0 stands for none.
 *
 * Something was missed when a count is known to exist above the last one that was heard: because a broadcast names it as the
 * one before, or because it stands in Redis when listening begins again. A lower one in the primary means that Redis lost
 * what it knew, unless broadcasts were heard before the answer was.
 *
 * The first answer of each source is where listening begins there: nothing before it counts as missed.
 */
export class SeenCount {
  #last: number | undefined;
  /** Sources that answered once. */
  readonly #known = new Set<number>();
  /** Sources of which a broadcast was heard since listening to them ended or was not yet known to have begun. */
  readonly #heard = new Set<number>();

  /** A broadcast was heard from a source. Answers whether one before it may have been missed. */
  heard(source: number, { count, previous }: Place): boolean {
    const isMissed = this.#last !== undefined && previous > this.#last;
    this.#last = Math.max(this.#last ?? 0, count);
    this.#heard.add(source);
    return isMissed;
  }

  /** Listening to a source broke. */
  ended(source: number): void {
    this.#heard.delete(source);
  }

  /** Listening to a source began, for the first time or again; 0 is the primary. Answers whether one may have been missed. */
  began(source: number, count: number): boolean {
    const isFirst = !this.#known.has(source);
    const last = this.#last ?? count;
    const isLost = source === 0 && count < last && !this.#heard.has(source);
    this.#known.add(source);
    this.#last = isLost ? count : Math.max(last, count);
    return !isFirst && (count > last || isLost);
  }
}
