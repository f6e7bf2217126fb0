import { IdmintError, type Timers } from "@idmint/core";
import { overloaded, within } from "./call.ts";

/** Calls of operators that are with the store at once, and that wait for their turn. */
const MAX_RUNNING = 8;
const MAX_WAITING = 1_000;

/**
 * Bounds what operators' calls ask of the store, so that a storm of them leaves it time for grants. Each is tried once
 * and bounded in time; after that its outcome is unknown.
 */
export class AdminGate {
  readonly #timers: Timers;
  readonly #boundMs: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(timers: Timers, boundMs: number) {
    this.#timers = timers;
    this.#boundMs = boundMs;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= MAX_RUNNING) {
      if (this.#waiting.length >= MAX_WAITING) {
        throw overloaded("too many operators' calls wait for the store");
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else {
      this.#running++;
    }
    try {
      return await within(work, this.#boundMs, this.#timers);
    } catch (thrown) {
      throw IdmintError.from(thrown);
    } finally {
      // Whoever is next takes the place over, so that nobody slips in between.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
