import { cancelled } from "./errors.ts";

/**
 * A moment on two clocks, in milliseconds. The monotonic one never jumps, but stands still while the machine is suspended;
 * the wall clock goes on, but may be set.
 */
export interface Instant {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** How much time may have passed at most: a wall clock that was set ahead ends a lease early, never late. */
export function elapsedMs(from: Instant, to: Instant): number {
  return Math.max(to.monotonicMs - from.monotonicMs, to.wallMs - from.wallMs);
}

/** Time and chance. Tests bring their own. */
export interface Runtime {
  readonly now: () => Instant;
  /** Runs something later; the answer cancels it. */
  readonly after: (delayMs: number, run: () => void) => () => void;
  /** At least 0, below 1. */
  readonly random: () => number;
}

export const nodeRuntime: Runtime = {
  now: () => ({ monotonicMs: performance.now(), wallMs: Date.now() }),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => {
      clearTimeout(timer);
    };
  },
  random: Math.random,
};

/** Waits; CALL_CANCELLED when the signal fires first. */
export async function pause(
  runtime: Runtime,
  delayMs: number,
  { what, signal }: { readonly what: string; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  if (signal?.aborted === true) throw cancelled(what, signal);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = (): void => {
    if (signal !== undefined) reject(cancelled(what, signal));
  };
  const cancel = runtime.after(delayMs, resolve);
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    await promise;
  } finally {
    cancel();
    signal?.removeEventListener("abort", onAbort);
  }
}
