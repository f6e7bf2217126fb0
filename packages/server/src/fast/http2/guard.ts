import { CODE, type Code } from "./frames.ts";
import { type ConnectionLimits, Leak } from "./limits.ts";

/** As much of either at once slows nobody down: all calls of a connection may be cancelled together. */
const CALM = 1_024;

/** Counts what a peer does for nothing, and ends its connection when it is too much (RFC 9113, 10.5). */
export class Guard {
  readonly #nuisance: Leak;
  readonly #resets: Leak;
  readonly #now: () => number;
  readonly #fail: (code: Code, why: string) => void;
  #isCounting = false;

  constructor(
    limits: ConnectionLimits,
    now: () => number,
    fail: (code: Code, why: string) => void,
  ) {
    this.#nuisance = new Leak(limits.nuisanceBurst, limits.nuisancePerSecond);
    this.#resets = new Leak(limits.resetBurst, limits.resetPerSecond);
    this.#now = now;
    this.#fail = fail;
  }

  /**
   * How many milliseconds the peer is not to be read for. So a flood costs others what one that keeps to the limits costs, and
   * only what comes at once and is far too much ends the connection: whoever floods comes back at once.
   */
  get waitMs(): number {
    if (!this.#isCounting) return 0;
    const now = this.#now();
    const waitMs = Math.max(this.#nuisance.msUntil(CALM, now), this.#resets.msUntil(CALM, now));
    this.#isCounting = waitMs > 0;
    return waitMs;
  }

  /** A frame that was of no use. Answers whether the connection is over for it. */
  useless(what: string): boolean {
    this.#isCounting = true;
    if (!this.#nuisance.overflows(this.#now())) return false;
    this.#fail(CODE.ENHANCE_YOUR_CALM, what);
    return true;
  }

  /** A stream that its peer reset, or that we did for its fault (CVE-2023-44487, CVE-2025-8671). Answers as `useless`. */
  reset(): boolean {
    this.#isCounting = true;
    if (!this.#resets.overflows(this.#now())) return false;
    this.#fail(CODE.ENHANCE_YOUR_CALM, "too many resets");
    return true;
  }
}
