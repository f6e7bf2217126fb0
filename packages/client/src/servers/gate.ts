import type { IdmintError } from "@idmint/core";
import { ended, FRESH, heard, isSilent, maySend, type Pace, sent, tooMany } from "./pace-state.ts";

type Enter = (silence: IdmintError | undefined) => void;

/**
 * Where the requests of a client to one server wait until it may be asked: the shell around `pace-state.ts`. They are asked
 * in the order in which they came; those for which somebody waits with every id go before loads of what will be cached.
 *
 * INVARIANT: whoever waits goes on in bounded time. Each request in flight ends by its deadline, and lets the next one go;
 * and when one ends without a word from a server that was not heard since it was sent, all that wait go on at once, to
 * another server. A tag has one request at most, so `maxTags` bounds how many wait.
 */
export class Gate {
  #pace: Pace = FRESH;
  readonly #first = new Set<Enter>();
  readonly #waiting = new Set<Enter>();

  /** Whether nothing is in flight, and nothing waits. */
  get isIdle(): boolean {
    return this.#pace.inFlight === 0 && this.#first.size + this.#waiting.size === 0;
  }

  /** To be awaited before a request; `leave` follows. Answers why it is not to be sent: the server is silent. */
  enter(goesFirst = false): Promise<IdmintError | undefined> | undefined {
    const before = goesFirst ? this.#first.size : this.#first.size + this.#waiting.size;
    if (before === 0 && maySend(this.#pace)) {
      this.#pace = sent(this.#pace);
      return undefined;
    }
    return new Promise((resolve) => {
      (goesFirst ? this.#first : this.#waiting).add(resolve);
    });
  }

  /** The same for a request that cannot wait. */
  enterAtOnce(): undefined {
    this.#pace = sent(this.#pace);
  }

  /** The request is over. */
  leave(): void {
    this.#pace = ended(this.#pace);
    for (const waiting of [this.#first, this.#waiting]) {
      for (const enter of waiting) {
        if (!maySend(this.#pace)) return;
        waiting.delete(enter);
        this.#pace = sent(this.#pace);
        enter(undefined);
      }
    }
  }

  /** The server answered, or refused. */
  heard(nowMs: number): void {
    this.#pace = heard(this.#pace, nowMs);
  }

  /** It said that it is asked for too much. */
  overloaded(sentAtMs: number, nowMs: number): void {
    this.#pace = tooMany(this.#pace, sentAtMs, nowMs);
  }

  /** A request got no answer. */
  unanswered(sentAtMs: number, nowMs: number, failure: IdmintError): void {
    this.#pace = tooMany(this.#pace, sentAtMs, nowMs);
    if (!isSilent(this.#pace, sentAtMs)) return;
    const waiting = [...this.#first, ...this.#waiting];
    this.#first.clear();
    this.#waiting.clear();
    for (const enter of waiting) enter(failure);
  }
}
