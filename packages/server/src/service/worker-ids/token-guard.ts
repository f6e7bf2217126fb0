import type { WorkerLeaseKey } from "@idmint/core";

/** Worker ids whose tokens are remembered; of more, those that were heard of longest ago are not. */
const MAX_SEEN = 100_000;

interface Seen {
  readonly token: bigint;
  /** When it was answered, in the order of the guard's turns. */
  readonly turn: number;
}

/**
 * Remembers the last token of each worker id that the store answered to this server. Tokens of a worker id rise with every
 * lease and renewal, so one that is not above it means that the store went back (a fail-over to a lagging replica, a
 * restored backup), and that time it reserved since may be reserved again. What VersionGuard is to grants.
 *
 * INVARIANT: an answer is compared with what had been seen *when its request was sent*, since answers to requests that
 * overlap may arrive in any order.
 */
export class TokenGuard {
  readonly #seen = new Map<string, Seen>();
  #turn = 0;

  /** The turn of a request; to be asked when it is sent. */
  begin(): number {
    return ++this.#turn;
  }

  /** Takes note of the answer to the request of a turn. Otherwise: the token that was seen before, which it is not above. */
  admit(key: WorkerLeaseKey, begun: number): bigint | undefined {
    const name = `${key.tag}\n${key.dataCenter}\n${key.workerId}`;
    const seen = this.#seen.get(name);
    if (seen !== undefined && key.token <= seen.token) {
      return seen.turn < begun ? seen.token : undefined;
    }
    this.#seen.delete(name);
    this.#seen.set(name, { token: key.token, turn: ++this.#turn });
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > MAX_SEEN && oldest !== undefined) this.#seen.delete(oldest);
    return undefined;
  }
}
