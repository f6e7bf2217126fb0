/**
 * How many further tries a client may make. A fleet in trouble must not get several times the load of its callers from
 * tries that fail: beyond a small reserve, a client sends at most one further try for every ten requests.
 *
 * INVARIANT: over any time the further tries are at most a tenth of the requests of that time, one for each `REFILL_MS`, and
 * what the bucket holds. Pure: the caller has the clock.
 */

/** Part of a try that each request earns. */
const EARNED = 0.1;
/** A bucket fills by itself, so that a quiet client may try again too: one try in this time. */
const REFILL_MS = 5_000;
/** Least that a bucket holds. It holds a try for each endpoint, so that a quiet client may ask all of them once. */
const LEAST_CAPACITY = 10;

export interface RetryBudget {
  readonly tokens: number;
  readonly atMs: number;
}

export function fullBudget(endpoints: number, nowMs: number): RetryBudget {
  return { tokens: capacityFor(endpoints), atMs: nowMs };
}

function capacityFor(endpoints: number): number {
  return Math.max(LEAST_CAPACITY, endpoints);
}

/** A request is sent for the first time. */
export function earn(budget: RetryBudget, endpoints: number, nowMs: number): RetryBudget {
  const passedMs = Math.max(0, nowMs - budget.atMs);
  const tokens = budget.tokens + EARNED + passedMs / REFILL_MS;
  return { tokens: Math.min(capacityFor(endpoints), tokens), atMs: nowMs };
}

/** The budget after one further try; undefined: it may not be made. */
export function spend(budget: RetryBudget): RetryBudget | undefined {
  return budget.tokens < 1 ? undefined : { ...budget, tokens: budget.tokens - 1 };
}
