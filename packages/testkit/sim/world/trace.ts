import type { EventQueue } from "./queue.ts";

/** Lines that a violation shows. */
const MOST_LAST = 40;

/**
 * What happened, in lines, and their hash. The lines are made of nothing but simulated times, names and values, so two runs of one
 * seed on one commit have the same hash.
 */
export class Trace {
  readonly #queue: EventQueue;
  readonly #sink: ((line: string) => void) | undefined;
  readonly #last: string[] = [];
  #high = 0x9e3779b9;
  #low = 0x85ebca6b;
  lines = 0;

  constructor(queue: EventQueue, sink?: (line: string) => void) {
    this.#queue = queue;
    this.#sink = sink;
  }

  note(who: string, what: string): void {
    const line = `${this.#queue.now.toFixed(3).padStart(11)} ${who.padEnd(8)} ${what}`;
    this.lines++;
    this.#hash(line);
    this.#last.push(line);
    if (this.#last.length > 2 * MOST_LAST) this.#last.splice(0, MOST_LAST);
    this.#sink?.(line);
  }

  get last(): readonly string[] {
    return this.#last.slice(-MOST_LAST);
  }

  get hash(): string {
    return textOf(this.#high) + textOf(this.#low);
  }

  #hash(line: string): void {
    let high = this.#high;
    let low = this.#low;
    for (let at = 0; at < line.length; at++) {
      const code = line.charCodeAt(at);
      high = Math.imul(high ^ code, 0x01000193);
      low = Math.imul(low ^ (code + (high >>> 15)), 0x5bd1e995);
    }
    this.#high = high;
    this.#low = low;
  }
}

function textOf(word: number): string {
  return (word >>> 0).toString(16).padStart(8, "0");
}
