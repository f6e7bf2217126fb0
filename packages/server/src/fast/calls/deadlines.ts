import type { Clock, Timers } from "@idmint/core";

/** How late a deadline may be noticed. */
const TICK_MS = 16;

/** Something that ends when its time is over. */
export interface Timed {
  expired(): void;
}

/**
 * The deadlines of all calls that wait, in one timer: calls come and go far more often than their time is over, so each costs
 * an entry in a set and no timer of its own.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #timers: Timers;
  /** What ends in a tick, by its number. */
  readonly #ticks = new Map<number, Set<Timed>>();
  #next = 0;
  #isTicking = false;

  /** `clock` is never set back: with the wall clock, calls would wait as long again as somebody sets it back. */
  constructor({ clock, timers }: { readonly clock: Clock; readonly timers: Timers }) {
    this.#clock = clock;
    this.#timers = timers;
  }

  /** Answers the tick, which `remove` wants. */
  add(timed: Timed, deadline: number): number {
    const tick = Math.max(this.#now() + 1, Math.ceil(deadline / TICK_MS));
    const known = this.#ticks.get(tick);
    if (known === undefined) this.#ticks.set(tick, new Set([timed]));
    else known.add(timed);
    this.#start();
    return tick;
  }

  remove(timed: Timed, tick: number): void {
    const known = this.#ticks.get(tick);
    known?.delete(timed);
    if (known?.size === 0) this.#ticks.delete(tick);
  }

  #now(): number {
    return Math.floor(this.#clock.now() / TICK_MS);
  }

  #start(): void {
    if (this.#isTicking) return;
    this.#isTicking = true;
    this.#next = this.#now() + 1;
    this.#timers.after(TICK_MS, () => this.#tick());
  }

  #tick(): void {
    const now = this.#now();
    // After a long stop there may be more ticks to go over than entries.
    const isLong = now - this.#next > this.#ticks.size;
    const due = isLong ? [...this.#ticks.keys()].filter((tick) => tick <= now) : [];
    if (!isLong) for (let tick = this.#next; tick <= now; tick++) due.push(tick);
    for (const tick of due.toSorted((a, b) => a - b)) {
      const ended = this.#ticks.get(tick);
      this.#ticks.delete(tick);
      for (const timed of ended ?? []) timed.expired();
    }
    this.#next = now + 1;
    this.#isTicking = this.#ticks.size > 0;
    if (this.#isTicking) this.#timers.after(TICK_MS, () => this.#tick());
  }
}
