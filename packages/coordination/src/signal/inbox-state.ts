import type { Signal, Wakeup } from "./api.ts";

/**
 * What a listener has heard and nobody has asked for yet: pure.
 *
 * | wants  | signal came                   | there is something to take when       |
 * |--------|-------------------------------|---------------------------------------|
 * | any    | it is the last in the line    | the line is not empty                 |
 * | all    | it is the one of its name     | there is one of each name             |
 * | either | something was missed          | at once: nobody knows what it was     |
 *
 * Invariants: the line is never longer than its limit, and what it had no room for is told as missed; a signal is taken at
 * most once; signals of one name are taken in the order of their coming.
 */
export class Inbox {
  readonly #limit: number;
  /** The names of which one each is wanted; undefined: any. */
  readonly #all: readonly string[] | undefined;
  readonly #line: Signal[] = [];
  readonly #newest = new Map<string, Signal>();
  readonly #missed = new Set<string>();

  constructor(limit: number, all?: readonly string[]) {
    this.#limit = limit;
    this.#all = all;
  }

  add(signal: Signal): void {
    if (this.#all !== undefined) {
      this.#newest.set(signal.name, signal);
      return;
    }
    this.#line.push(signal);
    if (this.#line.length <= this.#limit) return;
    const lost = this.#line.shift();
    if (lost !== undefined) this.#missed.add(lost.name);
  }

  /** A signal of this name may have been missed. */
  miss(name: string): void {
    this.#missed.add(name);
  }

  take(): Wakeup | undefined {
    if (this.#missed.size > 0) {
      const missed = [...this.#missed];
      this.#missed.clear();
      return { signals: this.#takeAll(), missed };
    }
    if (this.#all === undefined) {
      const first = this.#line.shift();
      return first === undefined ? undefined : { signals: [first], missed: [] };
    }
    if (this.#newest.size < this.#all.length) return undefined;
    return { signals: this.#takeAll(), missed: [] };
  }

  /** The newest of each name that is there; the names begin anew. Of a line nothing: it goes on. */
  #takeAll(): readonly Signal[] {
    const signals = (this.#all ?? []).flatMap((name) => this.#newest.get(name) ?? []);
    this.#newest.clear();
    return signals;
  }
}
