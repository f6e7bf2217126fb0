import { bounded, type Timers } from "@idmint/core";

/** Counts what a door is still to answer. */
export class InFlight {
  readonly #timers: Timers;
  #count = 0;
  #onIdle: (() => void) | undefined;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  begun(): void {
    this.#count++;
  }

  ended(): void {
    this.#count--;
    if (this.#count === 0) this.#onIdle?.();
  }

  /** Fulfils when nothing is in flight, or after `boundMs`. */
  idle(boundMs: number): Promise<void> {
    if (this.#count === 0) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onIdle = resolve;
    return bounded(promise, boundMs, this.#timers, () => undefined);
  }
}
