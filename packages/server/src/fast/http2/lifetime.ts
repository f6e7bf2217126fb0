/** How long a peer may take to acknowledge our settings (RFC 9113, 6.5.3). */
const SETTINGS_TIMEOUT_MS = 10_000;
/** After so long without a byte a peer is asked whether it is there, and so long it may take to answer. */
const KEEPALIVE_MS = 30_000;
const KEEPALIVE_TIMEOUT_MS = 20_000;
/**
 * How long a peer may take to answer the PING behind GOAWAY, before we say without it which stream was the last. Calls that it
 * began meanwhile are left unanswered then, so it has as long as servers of grpc-go give it.
 */
const LAST_CALL_MS = 5_000;
/** What a connection has that is too old, for the calls on it; and then for their last words. */
const AGE_GRACE_MS = 30_000;
const LAST_WORDS_MS = 5_000;
/** How long the socket of a connection that is over is kept, so that the peer reads why. */
const END_GRACE_MS = 5_000;
/** How long a peer that is to go may take to show that it reads; one that does not is left without a word. */
const FIRST_WORDS_MS = 1_000;
const NEVER = -1;

/** What is to be done with a connection now. */
export type Due =
  | "nothing"
  | "ping"
  | "leave"
  | "tell last"
  | "end calls"
  | "give up"
  | "end"
  | "destroy";

/**
 * The time of one connection: pure, looked at now and then.
 *
 * `now` is the time in which the server was awake (`AwakeTime`), so no peer is taken for silent because we were.
 */
export class Lifetime {
  readonly #bornAt: number;
  readonly #maxAgeMs: number;
  #heardAt: number;
  #pingedAt = NEVER;
  #goesAt = NEVER;
  #leavesAt = NEVER;
  #endsAt = NEVER;
  #isHeard = false;
  #isSettled = false;
  #isLastTold = false;
  #callsEndedAt = NEVER;

  constructor(now: number, maxAgeMs: number) {
    this.#bornAt = now;
    this.#heardAt = now;
    this.#maxAgeMs = maxAgeMs;
  }

  /** Something came. */
  heard(): void {
    this.#isHeard = true;
  }

  /** The peer acknowledged our settings. */
  settled(): void {
    this.#isSettled = true;
  }

  /** The peer is to be told to go, and did not show yet that it reads. */
  goes(now: number): void {
    this.#goesAt = now;
  }

  /** GOAWAY was sent, without a last stream. */
  leaves(now: number): void {
    this.#goesAt = NEVER;
    this.#leavesAt = now;
  }

  /** The last stream was told. */
  toldLast(): void {
    this.#isLastTold = true;
  }

  /** All was said. */
  ends(now: number): void {
    this.#endsAt = now;
  }

  /** What is due; to be asked several times a second. Undefined text: nothing went wrong. */
  look(now: number): Due {
    if (this.#endsAt !== NEVER) return now - this.#endsAt >= END_GRACE_MS ? "destroy" : "nothing";
    if (!this.#isSettled && now - this.#bornAt >= SETTINGS_TIMEOUT_MS) return "end";
    if (this.#goesAt !== NEVER) return now - this.#goesAt >= FIRST_WORDS_MS ? "end" : "nothing";
    // One that was told to go for another reason grows old all the same, if calls stay on it.
    const isOld = now - this.#bornAt >= this.#maxAgeMs;
    if (this.#leavesAt !== NEVER) {
      const forMs = now - this.#leavesAt;
      if (isOld && forMs >= AGE_GRACE_MS) {
        if (this.#callsEndedAt === NEVER) {
          this.#callsEndedAt = now;
          return "end calls";
        }
        if (now - this.#callsEndedAt >= LAST_WORDS_MS) return "give up";
      }
      if (!this.#isLastTold && forMs >= LAST_CALL_MS) return "tell last";
    } else if (isOld) return "leave";
    return this.#keepAlive(now);
  }

  /** Why it is to be given up. */
  why(): string {
    return this.#callsEndedAt === NEVER ? "no answer to our PING" : "the connection is too old";
  }

  /** Whether the peer acknowledged our settings. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  #keepAlive(now: number): Due {
    if (this.#isHeard) {
      this.#isHeard = false;
      this.#heardAt = now;
      this.#pingedAt = NEVER;
    } else if (this.#pingedAt !== NEVER) {
      if (now - this.#pingedAt >= KEEPALIVE_TIMEOUT_MS) return "give up";
    } else if (now - this.#heardAt >= KEEPALIVE_MS) {
      this.#pingedAt = now;
      return "ping";
    }
    return "nothing";
  }
}

/** The time in which this process ran: a stop counts as one late look. */
export class AwakeTime {
  readonly #mostMs: number;
  #at: number;
  #now = 0;

  constructor(at: number, mostMs: number) {
    this.#at = at;
    this.#mostMs = mostMs;
  }

  get now(): number {
    return this.#now;
  }

  /** To be called at each look, with a clock that is never set back. */
  tick(at: number): void {
    this.#now += Math.min(at - this.#at, this.#mostMs);
    this.#at = at;
  }
}
