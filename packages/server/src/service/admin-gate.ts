import { IdmintError, type Timers } from "@idmint/core";
import { overloaded, within } from "./call.ts";

/** Calls of operators that are with the store at once, and that wait for their turn. */
const MAX_RUNNING = 8;
const MAX_WAITING = 1_000;
/** A call that waited this long is refused: its caller must not find it done long after giving up. */
const MAX_WAIT_MS = 2_000;

/**
 * Bounds what operators' calls ask of the store, so that a storm of them leaves it time for grants. Each is tried once
 * and bounded in time; after that its outcome is unknown.
 */
export class AdminGate {
  readonly #timers: Timers;
  readonly #boundMs: number;
  readonly #waiting = new Set<() => void>();
  #running = 0;

  constructor(timers: Timers, boundMs: number) {
    this.#timers = timers;
    this.#boundMs = boundMs;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= MAX_RUNNING) await this.#turn();
    else this.#running++;
    try {
      return await within(work, this.#boundMs, this.#timers);
    } catch (thrown) {
      throw IdmintError.from(thrown);
    } finally {
      // Whoever is next takes the place over, so that nobody slips in between.
      const [next] = this.#waiting;
      if (next === undefined) this.#running--;
      else next();
    }
  }

  /** Fulfils when this call took somebody's place over. */
  #turn(): Promise<void> {
    if (this.#waiting.size >= MAX_WAITING) return Promise.reject(tooMany());
    return new Promise((resolve, reject) => {
      const stopTimer = this.#timers.after(MAX_WAIT_MS, () => {
        this.#waiting.delete(start);
        reject(tooMany());
      });
      const start = (): void => {
        stopTimer();
        this.#waiting.delete(start);
        resolve();
      };
      this.#waiting.add(start);
    });
  }
}

function tooMany(): IdmintError {
  return overloaded("too many administrative calls are waiting for the store");
}
