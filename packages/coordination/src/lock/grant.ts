import { CoordinationError, type NodeCause } from "../errors.ts";
import { type Answer, Lease } from "../lease/lease.ts";
import type { Runtime } from "../time.ts";
import type { Taken } from "./acquire.ts";
import type { LockClaim, LockNode } from "./lock-node.ts";
import type { LockSettings } from "./options.ts";
import { ask, majorityOf } from "./quorum.ts";

/** A lock that is held. `await using` releases it. */
export class LockGrant implements AsyncDisposable {
  /** The lock's name. */
  readonly lock: string;
  /**
   * The fencing token: above that of every earlier grant of this lock, if `isOrdered`. Send it along with each write, and let what is
   * written refuse tokens below the highest it has seen: that, and not the lock, keeps a paused holder out.
   */
  readonly token: bigint;
  /**
   * Whether the order of tokens is promised. It is not with several nodes and no `tokenSource`: a node that lost its data
   * counts on from its clock, and tokens may go back by as much as the nodes' clocks differ.
   */
  readonly isOrdered: boolean;
  readonly #nodes: readonly LockNode[];
  readonly #claim: LockClaim;
  readonly #settings: LockSettings;
  readonly #lease: Lease;
  #isReleased = false;
  readonly #forget: readonly (() => void)[];

  constructor(
    nodes: readonly LockNode[],
    claim: LockClaim,
    { token, askedAt }: Taken,
    { settings, runtime }: { readonly settings: LockSettings; readonly runtime: Runtime },
  ) {
    this.lock = claim.lock;
    this.token = token;
    this.isOrdered = nodes.length === 1 || settings.tokenSource !== undefined;
    this.#nodes = nodes;
    this.#claim = claim;
    this.#settings = settings;
    const { ttlMs, isExtended, nodeTimeoutMs, onEvent } = settings;
    const limits = { timeoutMs: nodeTimeoutMs };
    this.#lease = new Lease({
      runtime,
      ttlMs,
      askedAt,
      isRenewed: isExtended,
      graceMs: nodeTimeoutMs,
      renew: async () => {
        const answer = await this.#poll("extending", (node) => node.extend(claim, limits));
        if (answer.type === "confirmed") onEvent({ type: "lock-extended", lock: this.lock, token });
        return answer;
      },
      verify: () => this.#poll("looking at", (node) => node.holds(claim, limits)),
      over: (cause) =>
        this.#lost(
          cause === undefined ? "its time is over" : "its nodes do not answer",
          cause?.nodes,
        ),
      onLost: (error) => {
        this.#stopWatching();
        onEvent({ type: "lock-lost", lock: this.lock, token, error });
      },
    });
    this.#forget = nodes.map((node) => node.onDisconnect(() => this.#disconnected()));
  }

  /** Fires when the lock may be lost: stop then. Its reason is a LOCK_LOST. Does not fire at `release`. */
  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  /** For how long it is surely held, in milliseconds, unless it is extended; 0 when it may be lost. */
  get remainingMs(): number {
    return this.#lease.remainingMs;
  }

  /** LOCK_LOST unless the lock is surely held at this moment, by this process's clocks. Asks no Redis. */
  assert(): void {
    if (this.#lease.isHeld) return;
    this.#lease.signal.throwIfAborted();
    throw this.#lost("it was released");
  }

  /** Keeps the lock for another `ttlMs` from now. LOCK_LOST when it is lost, NO_MAJORITY when too few nodes answer. */
  async extend(): Promise<void> {
    this.assert();
    const answer = await this.#lease.renew();
    if (answer.type !== "confirmed") throw answer.error;
  }

  /**
   * Gives the lock back, on all nodes. Never fails: where it cannot be said, the lock's time runs out. Answers once a
   * majority knows or cannot know.
   */
  async release(): Promise<void> {
    if (this.#isReleased) return;
    this.#isReleased = true;
    // A lock that may be lost may be there still, and others would wait for it.
    this.#lease.end();
    this.#stopWatching();
    const limits = { timeoutMs: this.#settings.nodeTimeoutMs };
    const { yes } = await ask(this.#nodes, (node) => node.release(this.#claim, limits));
    this.#settings.onEvent({
      type: "lock-released",
      lock: this.lock,
      token: this.token,
      isComplete: yes.length >= majorityOf(this.#nodes.length),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  async #poll(doing: string, question: (node: LockNode) => Promise<boolean>): Promise<Answer> {
    const { yes, no, failed } = await ask(this.#nodes, question);
    const majority = majorityOf(this.#nodes.length);
    if (yes.length >= majority) return { type: "confirmed" };
    // So many nodes don't have it that somebody else may have it already, or soon.
    if (this.#nodes.length - no.length < majority) {
      return { type: "refused", error: this.#lost("too few nodes still have it", failed) };
    }
    const text = `${doing} lock "${this.lock}" failed at ${failed.length} of ${this.#nodes.length} nodes`;
    const details = { nodes: failed, metadata: { lock: this.lock } };
    return { type: "unknown", error: new CoordinationError("NO_MAJORITY", text, details) };
  }

  #disconnected(): void {
    // ioredis tells of the end before it changes what it says of itself, or after; so look a moment later.
    queueMicrotask(() => {
      const ready = this.#nodes.filter((node) => node.isReady).length;
      if (ready < majorityOf(this.#nodes.length)) this.#lease.suspect();
    });
  }

  #lost(why: string, nodes: readonly NodeCause[] = []): CoordinationError {
    const text = `lock "${this.lock}" with token ${this.token} may be lost: ${why}`;
    const metadata = { lock: this.lock, token: String(this.token) };
    return new CoordinationError("LOCK_LOST", text, { nodes, metadata });
  }

  #stopWatching(): void {
    for (const forget of this.#forget) forget();
  }
}
