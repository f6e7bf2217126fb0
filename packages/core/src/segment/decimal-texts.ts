/** Ids from here on have more than 12 digits. V8 joins longer strings only when they are read, which takes more time. */
export const SHORT_IDS_END = 1e12;
const BLOCK = 1_000;

/** "000" to "999"; made when the first id is written, since most processes write none. */
let endings: readonly string[] | undefined;

/**
 * Writes numbers below `SHORT_IDS_END` as decimals. Neighbours share all but their last three digits, so it keeps those that
 * come before and takes the last three from a table.
 *
 * INVARIANT: while `#from` is finite, `#prefix` is the text of `#from / 1000`, and `#from` is a multiple of 1000 above 0.
 */
export class DecimalTexts {
  readonly #endings: readonly string[] = (endings ??= endingsOf());
  #from = Infinity;
  #prefix = "";

  of(id: number): string {
    const rest = id - this.#from;
    return rest >= 0 && rest < BLOCK ? this.#prefix + this.#endings[rest] : this.#enter(id);
  }

  #enter(id: number): string {
    if (id < BLOCK) return String(id);
    // Below 2^31, so that it becomes text the short way.
    const block = Math.trunc(id / BLOCK) | 0;
    this.#from = block * BLOCK;
    this.#prefix = String(block);
    return this.#prefix + this.#endings[id - this.#from];
  }
}

function endingsOf(): string[] {
  return Array.from({ length: BLOCK }, (_, ending) => String(ending).padStart(3, "0"));
}
