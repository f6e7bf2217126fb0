/** Length of the window whose average counts as a rate, in milliseconds (docs/guarantees.md, “peak rate”). */
const WINDOW_MS = 10_000;
/** How often a position is remembered within the window, in milliseconds. */
const STEP_MS = 1_000;
const STEPS = WINDOW_MS / STEP_MS;
/** The last `hold_for` is kept as this many maxima, so that a tag's memory does not grow with hold_for. */
const MAX_BUCKETS = 15;

/**
 * Finds the peak rate of a tag: the highest 10-second average of the last `hold_for`. It never looks at a clock: the
 * caller tells the time and how many ids were issued in all, about once a second while ids are issued.
 */
export interface RateMeter {
  /** When and at which total the remembered positions of the window were taken, oldest first. */
  times: number[];
  totals: number[];
  /** Highest average seen in each past stretch of `bucketMs`, newest last, in ids per millisecond. */
  buckets: number[];
  bucketStart: number;
  readonly bucketMs: number;
  readonly maxBuckets: number;
}

/** A meter that has seen nothing. */
export function createRateMeter(now: number, holdForMs: number): RateMeter {
  const bucketMs = Math.max(WINDOW_MS, Math.ceil(holdForMs / MAX_BUCKETS));
  const maxBuckets = Math.max(1, Math.ceil(holdForMs / bucketMs));
  return { times: [now], totals: [0], buckets: [0], bucketStart: now, bucketMs, maxBuckets };
}

/** Takes note that `total` ids had been issued by `now`; both never go down. */
export function observeRate(meter: RateMeter, now: number, total: number): void {
  rotateBuckets(meter, now);
  const average = windowAverage(meter, now, total);
  const newest = meter.buckets.length - 1;
  if (average > (meter.buckets[newest] ?? 0)) meter.buckets[newest] = average;
  const last = meter.times[meter.times.length - 1] ?? now;
  if (now - last < STEP_MS) return;
  meter.times.push(now);
  meter.totals.push(total);
  // One position more than steps: the window reaches back to the oldest one.
  if (meter.times.length > STEPS + 1) {
    meter.times.shift();
    meter.totals.shift();
  }
}

/** The highest 10-second average of about the last hold_for, in ids per millisecond, the running window included. */
export function peakRate(meter: RateMeter, now: number, total: number): number {
  let peak = windowAverage(meter, now, total);
  for (const average of meter.buckets) if (average > peak) peak = average;
  return peak;
}

/** Average since the oldest remembered position; a shorter history counts as a whole window, so that a burst of
 * milliseconds is not taken for a rate. */
function windowAverage(meter: RateMeter, now: number, total: number): number {
  const elapsed = now - (meter.times[0] ?? now);
  const issued = total - (meter.totals[0] ?? 0);
  return Math.max(0, issued) / Math.max(WINDOW_MS, elapsed);
}

function rotateBuckets(meter: RateMeter, now: number): void {
  let rotations = Math.floor((now - meter.bucketStart) / meter.bucketMs);
  if (rotations <= 0) return;
  meter.bucketStart += rotations * meter.bucketMs;
  rotations = Math.min(rotations, meter.maxBuckets);
  for (let i = 0; i < rotations; i++) meter.buckets.push(0);
  // One bucket is being filled, the others together reach back over hold_for.
  const excess = meter.buckets.length - (meter.maxBuckets + 1);
  if (excess > 0) meter.buckets.splice(0, excess);
}
