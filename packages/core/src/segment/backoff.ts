import { busyMs, type IdmintError } from "../errors.ts";
import type { Clock, Random, Timers } from "../ports.ts";

/** Shortest and longest wait before a failed load is tried again, in milliseconds. */
const BACKOFF_MIN_MS = 50;
const BACKOFF_MAX_MS = 2_000;

/**
 * How long to wait after the n-th failure in a row (n from 1): a random time between 50 ms and a bound that doubles
 * from 100 ms to 2 s, so that many servers do not come back to a recovering store in step.
 */
export function backoffMs(failures: number, random: Random): number {
  const bound = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(failures, 10));
  return Math.round(BACKOFF_MIN_MS + random() * (bound - BACKOFF_MIN_MS));
}

/** Part of the time a busy server asked for by which callers come later than that, each by another one. */
const BUSY_SPREAD = 0.2;

/** The same after this error: no sooner than a busy server asked for, and not all callers at that moment. */
export function backoffAfter(error: IdmintError, failures: number, random: Random): number {
  const askedMs = busyMs(error) ?? 0;
  return Math.max(backoffMs(failures, random), Math.round(askedMs * (1 + BUSY_SPREAD * random())));
}

/** The timer of the next try: one at most. */
export class RetryTimer {
  readonly #ports: { readonly clock: Clock; readonly timers: Timers };
  readonly #retry: () => void;
  #at = Infinity;
  #cancel: (() => void) | undefined;

  constructor(ports: { readonly clock: Clock; readonly timers: Timers }, retry: () => void) {
    this.#ports = ports;
    this.#retry = retry;
  }

  set(at: number): void {
    if (at === this.#at) return;
    this.#cancel?.();
    this.#at = at;
    const { clock, timers } = this.#ports;
    this.#cancel = timers.after(Math.max(0, at - clock.now()), () => {
      this.#at = Infinity;
      this.#retry();
    });
  }
}
