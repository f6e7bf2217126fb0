/**
 * How many requests a client has in flight to one server at once. Pure: `gate.ts` has the requests that wait.
 *
 * A server that is asked for more than it can answer in time answers nothing in time, and all its work is for nothing. So
 * this is TCP's way with a path of unknown capacity: the limit rises by one with each answer up to where it last proved too
 * high, and by one a round beyond; it is halved when an answer does not come in time, or the server says that it is overloaded.
 *
 * INVARIANTS
 * 1. `LEAST` ≤ limit ≤ `MOST`, and what is in flight was at most the limit when it was sent, but for requests that
 *    cannot wait.
 * 2. Requests that were under way together halve the limit once: one that was sent before it fell says nothing of the new one.
 */
export interface Pace {
  readonly limit: number;
  /** Up to here the limit rises by one with each answer. */
  readonly fastUpTo: number;
  readonly inFlight: number;
  /** When the limit fell last, and when the server was heard last; −∞: never. */
  readonly fellAtMs: number;
  readonly heardAtMs: number;
}

const FIRST = 64;
const LEAST = 8;
/** Half of the calls that a server takes from one connection at once. */
export const MOST = 512;

export const FRESH: Pace = {
  limit: FIRST,
  fastUpTo: MOST,
  inFlight: 0,
  fellAtMs: -Infinity,
  heardAtMs: -Infinity,
};

export function maySend({ inFlight, limit }: Pace): boolean {
  return inFlight < Math.floor(limit);
}

export function sent(pace: Pace): Pace {
  return { ...pace, inFlight: pace.inFlight + 1 };
}

/** A request is over, however it ended. */
export function ended(pace: Pace): Pace {
  return { ...pace, inFlight: pace.inFlight - 1 };
}

/** The server said something, whatever it was. */
export function heard(pace: Pace, nowMs: number): Pace {
  const rise = pace.limit < pace.fastUpTo ? 1 : 1 / pace.limit;
  return { ...pace, limit: Math.min(MOST, pace.limit + rise), heardAtMs: nowMs };
}

/** A request of that time got no answer in time, or the server is overloaded. */
export function tooMany(pace: Pace, sentAtMs: number, nowMs: number): Pace {
  // Invariant 2.
  if (sentAtMs <= pace.fellAtMs) return pace;
  const limit = Math.max(LEAST, Math.floor(pace.limit / 2));
  return { ...pace, limit, fastUpTo: limit, fellAtMs: nowMs };
}

/** Whether the server has not been heard since a request was sent: then it is away, and not slow. */
export function isSilent({ heardAtMs }: Pace, sinceMs: number): boolean {
  return heardAtMs < sinceMs;
}
