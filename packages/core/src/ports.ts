/** Monotonic time in milliseconds, from any origin. Never goes back, never jumps with the wall clock. */
export interface Clock {
  now(): number;
}

/** Runs a function later; the answer cancels it. */
export interface Timers {
  after(delayMs: number, run: () => void): () => void;
}

/** What is needed of an AbortSignal. */
export interface Abort {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** A number in [0, 1), for jitter only. */
export type Random = () => number;
