// Pure statistics of measurements. All of them refuse to make something up out of nothing.

/** The middle of some values; the mean of the two middle ones of an even number. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[sorted.length >> 1];
  const lower = sorted[(sorted.length - 1) >> 1];
  if (upper === undefined || lower === undefined) throw new RangeError("the median of no values");
  return (lower + upper) / 2;
}

/** The smallest and the largest of some values. */
export function spread(values: readonly number[]): readonly [least: number, most: number] {
  if (values.length === 0) throw new RangeError("the spread of no values");
  return [Math.min(...values), Math.max(...values)];
}

/**
 * The value below which a share of all lie: the smallest one such that at least `share` of them are not above it, so
 * always one that was measured. `sorted` ascending, `share` in (0, 1].
 */
export function percentile(sorted: Float64Array, share: number): number {
  const value = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
  if (value === undefined) throw new RangeError("a percentile of no values");
  return value;
}
