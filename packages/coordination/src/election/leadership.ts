import { asError, CoordinationError } from "../errors.ts";
import { type Answer, Lease } from "../lease/lease.ts";
import type { Instant, Runtime } from "../time.ts";
import type { Ballot } from "./ballot.ts";
import type { ElectionSettings } from "./options.ts";

/** Whose term it is, and since when it was asked for. */
export interface Mandate {
  /** Different for every try of everybody. */
  readonly owner: string;
  readonly term: bigint;
  readonly askedAt: Instant;
}

/** One term of a leader: renewed by itself until it is lost or resigned. `await using` resigns. */
export class Leadership implements AsyncDisposable {
  readonly election: string;
  /**
   * The number of this term: above that of every earlier leader. Send it along with each write, and let what is written
   * refuse terms below the highest it has seen.
   */
  readonly term: bigint;
  readonly #ballot: Ballot;
  readonly #owner: string;
  readonly #settings: ElectionSettings;
  readonly #lease: Lease;

  constructor(
    ballot: Ballot,
    { owner, term, askedAt }: Mandate,
    settings: ElectionSettings,
    runtime: Runtime,
  ) {
    const { name, ttlMs, onEvent } = settings;
    this.election = name;
    this.term = term;
    this.#ballot = ballot;
    this.#owner = owner;
    this.#settings = settings;
    const renew = (): Promise<Answer> => this.#renew();
    this.#lease = new Lease({
      runtime,
      ttlMs,
      askedAt,
      renew,
      verify: renew,
      isRenewed: true,
      // A broken connection takes nothing away: whichever Redis answers next elects nobody before a whole ttl is over.
      graceMs: ttlMs,
      over: (cause) => this.#notLeader("its time is over", cause),
      onLost: (error) => {
        onEvent({ type: "leadership-lost", election: name, term, error });
      },
    });
  }

  /** Fires when the leadership may be lost: stop then. Its reason is a NOT_LEADER. Does not fire at `resign`. */
  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  /** For how long it surely leads, in milliseconds, unless it renews; 0 when it may lead no more. */
  get remainingMs(): number {
    return this.#lease.remainingMs;
  }

  /**
   * NOT_LEADER unless it surely leads at this moment, by this process's clocks: call it before everything that only the
   * leader may do. Asks no Redis.
   */
  assert(): void {
    if (this.#lease.isHeld) return;
    this.#lease.signal.throwIfAborted();
    throw this.#notLeader("it resigned");
  }

  /** Asks Redis, which renews. NOT_LEADER when somebody else leads or may, NODE_UNAVAILABLE when Redis does not answer. */
  async verify(): Promise<void> {
    this.assert();
    const answer = await this.#lease.renew();
    if (answer.type !== "confirmed") throw answer.error;
  }

  /**
   * Does what only the leader may do: looks before, and again when it is done. NOT_LEADER when it leads no more; when
   * `work` was begun, it may have gone on into another leader's term, which only the term's number keeps apart.
   */
  async act<T>(work: (leadership: this) => Promise<T>): Promise<T> {
    this.assert();
    const result = await work(this);
    this.assert();
    return result;
  }

  /** Gives the leadership up, so that another is elected without delay. Never fails: else its time runs out. */
  async resign(): Promise<void> {
    if (!this.#lease.end()) return;
    const { name, nodeTimeoutMs, onEvent } = this.#settings;
    try {
      await this.#ballot.resign(this.#owner, { timeoutMs: nodeTimeoutMs });
    } catch {
      // Redis forgets it by itself.
    }
    onEvent({ type: "resigned", election: name, term: this.term });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.resign();
  }

  async #renew(): Promise<Answer> {
    try {
      const limits = { timeoutMs: this.#settings.nodeTimeoutMs };
      if (await this.#ballot.renew(this.#owner, limits)) return { type: "confirmed" };
      return { type: "refused", error: this.#notLeader("Redis does not know it as the leader") };
    } catch (error) {
      return { type: "unknown", error: asError(error) };
    }
  }

  #notLeader(why: string, cause?: CoordinationError): CoordinationError {
    const text = `the leader of "${this.election}" in term ${this.term} leads no more: ${why}`;
    const metadata = { election: this.election, term: String(this.term) };
    return new CoordinationError("NOT_LEADER", text, { metadata, cause });
  }
}
