import type { Stream } from "./stream.ts";

const FIRST_CELLS = 4;

/**
 * Streams by their ids. A map throws its table away after as many entries as it has room for, so a connection whose streams
 * come and go would fill the heap with tables.
 *
 * Open addressing with a step of one. INVARIANT: a stream is found from its own cell on before any empty one, so what leaves
 * lets those behind it move up. At most half of the cells are in use.
 */
export class StreamTable {
  #cells: (Stream | undefined)[] = Array.from({ length: FIRST_CELLS }, () => undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): Stream | undefined {
    const cells = this.#cells;
    const mask = cells.length - 1;
    for (let at = cellOf(id) & mask; ; at = (at + 1) & mask) {
      const stream = cells[at];
      if (stream === undefined || stream.id === id) return stream;
    }
  }

  /** Of an id that it does not have. */
  add(stream: Stream): void {
    if (2 * (this.#size + 1) > this.#cells.length) this.#grow();
    this.#put(stream);
    this.#size++;
  }

  /** Answers false when there is none. */
  delete(id: number): boolean {
    const cells = this.#cells;
    const mask = cells.length - 1;
    let gap = cellOf(id) & mask;
    while (cells[gap] !== undefined && cells[gap]?.id !== id) gap = (gap + 1) & mask;
    if (cells[gap] === undefined) return false;
    for (let at = (gap + 1) & mask; ; at = (at + 1) & mask) {
      const next = cells[at];
      if (next === undefined) break;
      // It may move up to the gap unless its own cell lies between them.
      if (((at - cellOf(next.id)) & mask) < ((at - gap) & mask)) continue;
      cells[gap] = next;
      gap = at;
    }
    cells[gap] = undefined;
    this.#size--;
    return true;
  }

  clear(): void {
    this.#cells.fill(undefined);
    this.#size = 0;
  }

  /** In the order in which their peer began them. */
  all(): Stream[] {
    return this.#cells.filter((stream) => stream !== undefined).toSorted((a, b) => a.id - b.id);
  }

  #grow(): void {
    const before = this.#cells;
    this.#cells = Array.from({ length: 2 * before.length }, () => undefined);
    for (const stream of before) if (stream !== undefined) this.#put(stream);
  }

  #put(stream: Stream): void {
    const cells = this.#cells;
    const mask = cells.length - 1;
    let at = cellOf(stream.id) & mask;
    while (cells[at] !== undefined) at = (at + 1) & mask;
    cells[at] = stream;
  }
}

/** Ids of clients are odd, and mostly lie side by side. */
function cellOf(id: number): number {
  return id >>> 1;
}
