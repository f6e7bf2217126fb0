/** What one caller or tag may still take. */
export interface Bucket {
  /** Below 0: debt. */
  tokens: number;
  /** When `tokens` was right. */
  at: number;
}

/** How fast a bucket fills, and what it holds at most. */
export interface Fill {
  readonly perMs: number;
  /** At least 1, so that a whole token fits in. */
  readonly burst: number;
}

/** Longest time in which a debt is paid. Whoever wants more at once is refused, so that no debt blocks a tag for days. */
const MAX_DEBT_MS = 60 * 60_000;
/** Fills are fractions, which may miss a whole by this. */
const ROUNDING = 1e-6;

export function fullBucket({ burst }: Fill, now: number): Bucket {
  return { tokens: burst, at: now };
}

/** Brings a bucket up to date. A clock that stands still or goes back adds nothing. */
export function refill(bucket: Bucket, { perMs, burst }: Fill, now: number): void {
  const passedMs = Math.max(0, now - bucket.at);
  bucket.tokens = Math.min(burst, bucket.tokens + passedMs * perMs);
  bucket.at = Math.max(bucket.at, now);
}

/**
 * How long to wait until `count` may be taken; 0: now. To be asked of a bucket that is up to date.
 *
 * INVARIANTS
 * 1. In any time t, what is taken is at most burst + rate × t, and less than one call more: a call is admitted as soon as
 *    there is one whole token, and what it takes above that is a debt, which is paid before the next call.
 * 2. No call waits for ever: every debt ends, and after `waitMs` of it one whole token is there, whatever the call wants.
 *    Only what could not be paid within `MAX_DEBT_MS` is never admitted.
 */
export function waitMs({ tokens }: Bucket, { perMs }: Fill): number {
  return tokens >= 1 - ROUNDING ? 0 : (1 - tokens) / perMs;
}

/** The most that one call may take. */
export function mostAtOnce({ perMs, burst }: Fill): number {
  return Math.floor(burst + perMs * MAX_DEBT_MS + ROUNDING);
}

/** Whether forgetting a bucket that is up to date loses nothing: a new one would be as full. */
export function isFull({ tokens }: Bucket, { burst }: Fill): boolean {
  return tokens >= burst;
}
