import type { CoordinationError } from "../errors.ts";
import { elapsedMs, type Instant, pause, type Runtime } from "../time.ts";
import {
  ended,
  heldSince,
  type LeaseState,
  looked,
  refused,
  remainingMs,
  renewed,
} from "./lease-state.ts";

/** What Redis says about something that is held. `unknown`: it could not be asked, or nobody heard its answer. */
export type Answer =
  | { readonly type: "confirmed" }
  | { readonly type: "refused"; readonly error: CoordinationError }
  | { readonly type: "unknown"; readonly error: CoordinationError };

export interface LeaseOptions {
  readonly runtime: Runtime;
  readonly ttlMs: number;
  /** When the grant was asked for. */
  readonly askedAt: Instant;
  /** Makes Redis keep it for another `ttlMs`. */
  readonly renew: () => Promise<Answer>;
  /** Asks Redis whether it is still there. */
  readonly verify: () => Promise<Answer>;
  /** Whether it is renewed by itself, each third of `ttlMs`. */
  readonly isRenewed: boolean;
  /** How long a broken connection may stay broken before the lease counts as lost, in milliseconds. */
  readonly graceMs: number;
  /** The error of one whose time is over, or whom Redis could not confirm, with the cause of that. */
  readonly over: (cause?: CoordinationError) => CoordinationError;
  readonly onLost: (error: CoordinationError) => void;
}

/** Parts of `ttlMs` after which it is renewed, and after which a renewal that failed is tried again. */
const SHARE = 1 / 3;
const RETRY_SHARE = 1 / 10;
/** Between two looks after a connection broke. */
const LOOK_EVERY_MS = 25;

/** Something that is held for a time: renews it, and says when it may be lost. */
export class Lease {
  readonly #options: LeaseOptions;
  readonly #controller = new AbortController();
  #state: LeaseState;
  #cancelExpiry: () => void = () => undefined;
  #cancelRenewal: () => void = () => undefined;
  #renewal: Promise<Answer> | undefined;
  #isSuspect = false;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#state = heldSince(options.askedAt, options.ttlMs);
    this.#watchExpiry();
    if (options.isRenewed) this.#renewAfter(options.ttlMs * SHARE);
  }

  /** Fires once when it may be lost; its reason is the error. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Milliseconds for which it is surely held, by the clock as it is now; 0 when it is not. */
  get remainingMs(): number {
    this.#look();
    return remainingMs(this.#state, this.#options.runtime.now());
  }

  get isHeld(): boolean {
    return this.remainingMs > 0;
  }

  /** Renews it now; one renewal at a time, which all callers share. */
  async renew(): Promise<Answer> {
    this.#renewal ??= this.#renewOnce().finally(() => {
      this.#renewal = undefined;
    });
    return this.#renewal;
  }

  /** A connection broke, so Redis may have restarted without it: lost unless Redis confirms it soon. */
  suspect(): void {
    if (this.#isSuspect || this.#state.phase !== "held") return;
    this.#isSuspect = true;
    void this.#clear().finally(() => {
      this.#isSuspect = false;
    });
  }

  /** Its holder gives it back. False when it was not held any more. */
  end(): boolean {
    const wasHeld = this.isHeld;
    this.#state = ended(this.#state);
    this.#stop();
    return wasHeld;
  }

  async #renewOnce(): Promise<Answer> {
    const { runtime, renew, over } = this.#options;
    if (!this.isHeld) return { type: "refused", error: over() };
    const askedAt = runtime.now();
    const answer = await renew();
    if (answer.type === "confirmed") {
      this.#look();
      this.#state = renewed(this.#state, askedAt, runtime.now());
      if (this.#state.phase !== "held") return { type: "refused", error: over() };
      this.#watchExpiry();
    } else if (answer.type === "refused") {
      this.#lose(answer.error);
    }
    return answer;
  }

  /** Asks until Redis confirms or the grace is over. Each ask is bounded by its time-out. */
  async #clear(): Promise<void> {
    const { runtime, isRenewed, graceMs } = this.#options;
    const start = runtime.now();
    // A renewal on its way may have been confirmed before the connection broke.
    await this.#renewal;
    while (this.isHeld) {
      const answer = await (isRenewed ? this.renew() : this.#options.verify());
      if (answer.type === "refused") this.#lose(answer.error);
      if (answer.type !== "unknown") return;
      if (elapsedMs(start, runtime.now()) >= graceMs) {
        this.#lose(this.#options.over(answer.error));
        return;
      }
      await pause(runtime, LOOK_EVERY_MS, { what: "a look" });
    }
  }

  #renewAfter(delayMs: number): void {
    this.#cancelRenewal = this.#options.runtime.after(delayMs, () => {
      void this.#renewAndGoOn();
    });
  }

  async #renewAndGoOn(): Promise<void> {
    const { type } = await this.renew();
    if (this.#state.phase !== "held") return;
    this.#renewAfter(this.#options.ttlMs * (type === "confirmed" ? SHARE : RETRY_SHARE));
  }

  /** A timer may be late, never early; whoever looks at the clock sees the end by itself. */
  #watchExpiry(): void {
    this.#cancelExpiry();
    const { runtime } = this.#options;
    const leftMs = Math.ceil(remainingMs(this.#state, runtime.now()));
    this.#cancelExpiry = runtime.after(leftMs, () => {
      this.#look();
      if (this.#state.phase === "held") this.#watchExpiry();
    });
  }

  #look(): void {
    const wasHeld = this.#state.phase === "held";
    this.#state = looked(this.#state, this.#options.runtime.now());
    if (wasHeld && this.#state.phase === "lost") this.#tell(this.#options.over());
  }

  #lose(error: CoordinationError): void {
    if (this.#state.phase !== "held") return;
    this.#state = refused(this.#state);
    this.#tell(error);
  }

  #tell(error: CoordinationError): void {
    this.#stop();
    this.#controller.abort(error);
    this.#options.onLost(error);
  }

  #stop(): void {
    this.#cancelExpiry();
    this.#cancelRenewal();
  }
}
