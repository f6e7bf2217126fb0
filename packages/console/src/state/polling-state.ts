/** How long to wait before what is shown is asked for again. */
export interface PollTimes {
  readonly everyMs: number;
  /** Failures one after the other. */
  readonly failures: number;
  /** In [0, 1). */
  readonly random: number;
}

const MAX_BACKOFF_MS = 15_000;

/** Backs off from a server that does not answer, each time a little differently, and never for long: it may be back. */
export function pollWaitMs({ everyMs, failures, random }: PollTimes): number {
  if (failures === 0) return everyMs;
  const grown = Math.min(everyMs * 2 ** Math.min(failures, 10), Math.max(everyMs, MAX_BACKOFF_MS));
  return grown / 2 + (grown / 2) * random;
}
