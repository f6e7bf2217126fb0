import { cancelled, CoordinationError } from "../errors.ts";

/** How long a call may take, and who may end it sooner. */
export interface CallLimits {
  /** Milliseconds, at least 1. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** The result of some work, or an error once its time is over or its signal fires; the work itself goes on unheard. */
export async function bounded<T>(what: string, work: Promise<T>, limits: CallLimits): Promise<T> {
  const { timeoutMs, signal } = limits;
  const { promise: over, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const text = `${what} took longer than ${timeoutMs} ms; it may have been done`;
    reject(new CoordinationError("NODE_UNAVAILABLE", text));
  }, timeoutMs);
  const onAbort = (): void => {
    if (signal !== undefined) reject(cancelled(what, signal));
  };
  signal?.addEventListener("abort", onAbort, { once: true });
  if (signal?.aborted === true) onAbort();
  try {
    return await Promise.race([work, over]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}
