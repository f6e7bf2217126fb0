/** Attempts of one read, the first one included. */
const MAX_ATTEMPTS = 3;
const FIRST_WAIT_MS = 200;
const MAX_WAIT_MS = 2_000;

/** How a call that failed may be made again. */
interface Failed {
  readonly isTransient: boolean;
  readonly retryAfterMs: number | undefined;
}

/**
 * How long to wait before a read is made again; undefined: it is not. `random` is in [0, 1).
 *
 * INVARIANT: only reads come here. A change whose outcome is not known is never made again by the console: the person sees
 * the error and looks.
 */
export function waitBeforeRetry(
  error: Failed,
  attempt: number,
  leftMs: number,
  random: number,
): number | undefined {
  if (!error.isTransient || attempt >= MAX_ATTEMPTS) return undefined;
  const grown = Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), MAX_WAIT_MS);
  // Full jitter above what the server asked for, so that pages opened together do not come back together.
  const wait = Math.max(error.retryAfterMs ?? 0, grown / 2) + (grown / 2) * random;
  return wait < leftMs ? wait : undefined;
}
