/** Length of the window whose average counts as a rate, in milliseconds (docs/guarantees.md, “peak rate”). */
export const WINDOW_MS = 10_000;
/** How often a position is remembered within the window, in milliseconds. */
const STEP_MS = 1_000;
const STEPS = WINDOW_MS / STEP_MS;
/** The last `hold_for` is kept as this many maxima, so that a tag's memory does not grow with hold_for. */
const MAX_BUCKETS = 15;

/**
 * Finds the peak rate of a tag: the highest 10-second average of the last `hold_for`. It never looks at a clock: the
 * caller tells the time and how many ids were issued in all, about once a second while ids are issued.
 *
 * Two rings share one array, since a server has 100,000 of these: the totals at the last eleven whole seconds, and the
 * highest averages, in ids per millisecond, of the last stretches of `bucketMs`.
 */
export interface RateMeter {
  readonly cells: number[];
  readonly bucketMs: number;
  /** The second whose total was remembered last, and the stretch that is being filled. */
  step: number;
  bucket: number;
}

/** A meter that has seen nothing: `total` ids had been issued by `now`, long ago. */
export function createRateMeter(now: number, total: number, holdForMs: number): RateMeter {
  const bucketMs = Math.max(STEP_MS, Math.ceil(holdForMs / MAX_BUCKETS));
  // One stretch is being filled, the others together reach back over hold_for.
  const buckets = Math.ceil(holdForMs / bucketMs) + 1;
  const cells = Array.from({ length: TOTALS + buckets }, (_, at) => (at < TOTALS ? total : 0));
  return { cells, bucketMs, step: Math.floor(now / STEP_MS), bucket: Math.floor(now / bucketMs) };
}

const TOTALS = STEPS + 1;

/** Takes note that `total` ids had been issued by `now`; both never go down. */
export function observeRate(meter: RateMeter, now: number, total: number): void {
  rememberTotal(meter, Math.floor(now / STEP_MS), total);
  openBucket(meter, Math.floor(now / meter.bucketMs));
  const at = bucketCell(meter, meter.bucket);
  meter.cells[at] = Math.max(meter.cells[at] ?? 0, windowAverage(meter, now, total));
}

/** The highest 10-second average of about the last hold_for, in ids per millisecond, the running window included. */
export function peakRate(meter: RateMeter, now: number, total: number): number {
  rememberTotal(meter, Math.floor(now / STEP_MS), total);
  openBucket(meter, Math.floor(now / meter.bucketMs));
  let peak = windowAverage(meter, now, total);
  for (let at = TOTALS; at < meter.cells.length; at++) peak = Math.max(peak, meter.cells[at] ?? 0);
  return peak;
}

/** Seconds that nobody observed get their share of what was issued since. */
function rememberTotal(meter: RateMeter, step: number, total: number): void {
  const gap = step - meter.step;
  if (gap <= 0) return;
  const before = meter.cells[meter.step % TOTALS] ?? 0;
  for (let back = Math.min(gap - 1, STEPS); back >= 0; back--) {
    meter.cells[(step - back) % TOTALS] = total - ((total - before) * back) / gap;
  }
  meter.step = step;
}

function openBucket(meter: RateMeter, bucket: number): void {
  const buckets = meter.cells.length - TOTALS;
  const passed = Math.min(bucket - meter.bucket, buckets);
  for (let back = 0; back < passed; back++) meter.cells[bucketCell(meter, bucket - back)] = 0;
  if (passed > 0) meter.bucket = bucket;
}

function bucketCell(meter: RateMeter, bucket: number): number {
  return TOTALS + (bucket % (meter.cells.length - TOTALS));
}

/** Average since the oldest remembered second, which lies ten to eleven seconds back. */
function windowAverage(meter: RateMeter, now: number, total: number): number {
  const oldest = meter.step - STEPS;
  const issued = total - (meter.cells[(oldest + TOTALS) % TOTALS] ?? 0);
  return Math.max(0, issued) / Math.max(WINDOW_MS, now - oldest * STEP_MS);
}
