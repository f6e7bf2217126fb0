import type { Clock } from "@idmint/core";

/** How long nobody has used something. Noting a use costs next to nothing, so that every id can. */
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

  /** It shall stay ready from now on: it is never idle again. */
  keep(): void {
    this.#isKept = true;
  }

  /** In milliseconds, as exactly as this is called often. */
  measure(): number {
    const now = this.#clock.now();
    if (this.#isUsed || this.#isKept) this.#sinceMs = now;
    this.#isUsed = false;
    return now - this.#sinceMs;
  }
}
