import { cancelled, type CoordinationError } from "../errors.ts";

interface Result {
  readonly element?: string;
  readonly error?: CoordinationError | undefined;
}

/** A call that waits for an element. */
interface Taker {
  readonly deadlineMs: number;
  /** How many rounds had begun when it came. */
  readonly joinedAt: number;
  readonly settle: (result: Result) => void;
}

/**
 * Calls that wait for an element, served in the order of their coming. Redis is asked in rounds; a call whose time is over
 * while a round runs that began after it came is answered by that round's end, so that even the shortest call has asked
 * once.
 */
export class Takers {
  readonly #what: string;
  readonly #waiting = new Set<Taker>();
  #rounds = 0;
  #isInRound = false;
  /** Why the last round failed. */
  #error: CoordinationError | undefined;

  constructor(what: string) {
    this.#what = what;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Waits for an element; undefined when the time is over. */
  wait(timeoutMs: number, signal: AbortSignal | undefined): Promise<string | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
    const onAbort = (): void => {
      if (signal !== undefined) taker.settle({ error: cancelled(this.#what, signal) });
    };
    const timer = setTimeout(() => {
      const isAsked = this.#isInRound && taker.joinedAt < this.#rounds;
      if (!isAsked) taker.settle({ error: this.#error });
    }, timeoutMs);
    const taker: Taker = {
      deadlineMs: performance.now() + timeoutMs,
      joinedAt: this.#rounds,
      settle: ({ element, error }) => {
        if (!this.#waiting.delete(taker)) return;
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        if (error === undefined) resolve(element);
        else reject(error);
      },
    };
    this.#waiting.add(taker);
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
    return promise;
  }

  beginRound(): void {
    this.#rounds++;
    this.#isInRound = true;
  }

  /** How long a round may wait for an element, in milliseconds, so that no call waits too long. */
  roundMs(maxMs: number): number {
    const now = performance.now();
    let waitMs = maxMs;
    for (const { deadlineMs } of this.#waiting) waitMs = Math.min(waitMs, deadlineMs - now);
    return Math.max(1, Math.ceil(waitMs));
  }

  /** A round ended: calls whose time is over hear that nothing came, or why nobody knows. */
  endRound(error?: CoordinationError): void {
    this.#isInRound = false;
    this.#error = error;
    const now = performance.now();
    for (const taker of this.#waiting) {
      if (taker.deadlineMs <= now) taker.settle({ error });
    }
  }

  /** Gives an element to the call that came first. False when nobody waits. */
  serve(element: string): boolean {
    const [first] = this.#waiting;
    first?.settle({ element });
    return first !== undefined;
  }

  refuseAll(error: CoordinationError): void {
    for (const taker of this.#waiting) taker.settle({ error });
  }
}
