/**
 * How long a lease lasts without a renewal. This frees the worker ids of dead holders; uniqueness does not rest on it.
 */
export const WORKER_TTL_MS = 30_000;
/** How far reservations may lead the registry's clock, or the tag's floor, beyond what is reserved ahead of use. */
export const MAX_LEAD_MS = 10_000;
/**
 * How many free rows a registry compares. With millions of worker ids that were all leased once, a lease must not read
 * all of them.
 */
export const FREE_CANDIDATES = 1_000;
export const DEFAULT_RESERVE_AHEAD_MS = 3_000;
export const MIN_RESERVE_AHEAD_MS = 1_000;
export const MAX_RESERVE_AHEAD_MS = 60_000;
