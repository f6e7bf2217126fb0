/** Bounds and aim of the size of a tag's segments. */
export interface SizingOptions {
  /** Fewest ids to load at once. */
  readonly min: number;
  /** Most ids to load at once. */
  readonly max: number;
  /** How long a segment shall last at the peak rate, in milliseconds. */
  readonly holdForMs: number;
}

/**
 * The size of the next segment. At the peak rate a segment of `size` lasts size / peak: it grows when that is less than
 * hold_for and shrinks when it is more than twice hold_for. The dead band between keeps the size from oscillating, and
 * holds it within a factor of two of peak × hold_for. (Leaf doubles and halves by the age of a segment instead, which
 * takes many loads to follow a rate.)
 */
export function nextSize(size: number, peakPerMs: number, options: SizingOptions): number {
  const wanted = Math.ceil(peakPerMs * options.holdForMs);
  const target = Math.min(options.max, Math.max(options.min, wanted));
  if (target > size || target * 2 < size) return target;
  return Math.min(options.max, Math.max(options.min, size));
}
