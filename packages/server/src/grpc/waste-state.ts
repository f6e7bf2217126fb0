import { type Bucket, type Fill, fullBucket, refill } from "@idmint/core/server";

/** How much work a server does that nobody wants, and how much of it a connection has for free. */
export interface WasteOptions {
  /** Of all connections together. */
  readonly all: Fill;
  /** Of each, whatever the others do. */
  readonly own: Fill;
}

/** A connection, as far as it wastes the time of its server. */
export interface Waster {
  readonly bucket: Bucket;
}

/**
 * Which connections are not read for a while, because the server has done too much for nothing. Pure.
 *
 * Waste is work that nobody wants: a call that its caller cancels, a message that comes in crumbs. Good callers cancel too,
 * and all at once when a store is slow. So nothing is held against a connection while all of them together waste little.
 *
 * INVARIANTS
 * 1. A connection within its own allowance is never held, whatever the others do.
 * 2. In any time t, all connections together waste at most `all.burst + all.perMs × t`, and each connection besides that its
 *    own allowance, and what it had sent already when it was held: whoever wastes above that is held until the pool
 *    has something again.
 * 3. Whoever is held goes on at last: those who are held go on in turn, one each time that the pool is not empty.
 */
export interface WasteState<W extends Waster> {
  readonly options: WasteOptions;
  readonly pool: Bucket;
  /** Longest first. */
  readonly held: Set<W>;
}

export function createWasteState<W extends Waster>(
  options: WasteOptions,
  now: number,
): WasteState<W> {
  return { options, pool: fullBucket(options.all, now), held: new Set() };
}

export function newWaster({ options }: WasteState<Waster>, now: number): Waster {
  return { bucket: fullBucket(options.own, now) };
}

/** A connection has wasted something. Answers whether it is to be held from now on. */
export function wasted<W extends Waster>(
  state: WasteState<W>,
  waster: W,
  units: number,
  now: number,
): boolean {
  const { options, pool, held } = state;
  refill(pool, options.all, now);
  refill(waster.bucket, options.own, now);
  pool.tokens -= units;
  waster.bucket.tokens -= units;
  // Invariants 1 and 2.
  if (pool.tokens >= 0 || waster.bucket.tokens >= 0 || held.has(waster)) return false;
  held.add(waster);
  return true;
}

/** The connection that goes on now, if one may. Invariant 3. */
export function nextToGoOn<W extends Waster>(state: WasteState<W>, now: number): W | undefined {
  refill(state.pool, state.options.all, now);
  if (state.pool.tokens <= 0) return undefined;
  const [first] = state.held;
  if (first !== undefined) state.held.delete(first);
  return first;
}
