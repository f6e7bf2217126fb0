import type { Clock, Timers } from "@idmint/core";

/** Time that moves only when told to: a clock and its timers in one. */
export class FakeTime implements Clock, Timers {
  #now: number;
  #timers: { readonly at: number; readonly run: () => void }[] = [];

  constructor(startMs = 0) {
    this.#now = startMs;
  }

  now(): number {
    return this.#now;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { at: this.#now + delayMs, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** How many timers are waiting. */
  get pending(): number {
    return this.#timers.length;
  }

  /** Moves time on and runs what comes due, in order, each at its own time. */
  advance(byMs: number): void {
    const until = this.#now + byMs;
    for (;;) {
      const next = this.#timers
        .filter((timer) => timer.at <= until)
        .toSorted((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#now = Math.max(this.#now, next.at);
      next.run();
    }
    this.#now = until;
  }
}
