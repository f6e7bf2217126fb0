import type { Random } from "../ports.ts";

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
