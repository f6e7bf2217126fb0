// What callers were told, over all lives of a server, and what is wrong with it. Pure.
/** How much of a tag's ids a crash may cost, in segments. */
export const MAX_GAP_SEGMENTS = 2;

/** One tag's ids: who has them, which nobody has, and what a crash cost. */
export class TagBook {
  /** Ids that a caller has; one that was given back has left it. */
  readonly #held = new Set<bigint>();
  /** Ids that were ever handed out. */
  readonly #ever = new Set<bigint>();
  readonly repeats: bigint[] = [];
  /** Ids up to the floor that nobody was given, at the last look. */
  #holes = 0n;
  #highest = 0n;
  received = 0;

  /** Highest id that anybody was given. */
  get highest(): bigint {
    return this.#highest;
  }

  receive(id: bigint): void {
    this.received++;
    if (this.#held.has(id)) this.repeats.push(id);
    this.#held.add(id);
    this.#ever.add(id);
    if (id > this.#highest) this.#highest = id;
  }

  /** A caller will not use it; somebody else may be given it. */
  giveBack(id: bigint): void {
    this.#held.delete(id);
  }

  /**
   * The gap that one life leaves behind: ids that became holes since the last look, less those that calls in flight had asked
   * for when the server died, whose answers nobody heard.
   */
  gapAt(floor: bigint, askedInVain: number): bigint {
    const holes = floor - BigInt(this.#ever.size);
    const gap = holes - this.#holes - BigInt(askedInVain);
    this.#holes = holes;
    return gap > 0n ? gap : 0n;
  }
}

/** Answers of a strict sequence to callers of one process: each is above all that came before it was asked for. */
export class OrderBook {
  #highest = 0n;
  readonly inversions: string[] = [];

  /** For a call that begins now; tell the answer to what this answers. */
  ask(): (id: bigint) => void {
    const before = this.#highest;
    return (id) => {
      if (id <= before) this.inversions.push(`${id} was asked for after ${before} was answered`);
      if (id > this.#highest) this.#highest = id;
    };
  }
}
