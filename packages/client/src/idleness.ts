import type { Clock } from "@idmint/core";

/** Measures how long something was not used. Noting a use is so cheap that every id can do it. */
export class Idleness {
  readonly #clock: Clock;
  #isUsed = true;
  #isKept = false;
  #sinceMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  use(): void {
    this.#isUsed = true;
  }

  /** From now on it must stay ready, so it is never idle again. */
  keep(): void {
    this.#isKept = true;
  }

  /** In milliseconds. The more often it is called, the more exact it is. */
  measure(): number {
    const now = this.#clock.now();
    if (this.#isUsed || this.#isKept) this.#sinceMs = now;
    this.#isUsed = false;
    return now - this.#sinceMs;
  }
}
