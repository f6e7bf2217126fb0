/** How often values lay between bounds: plain fields, since a record must cost no more than some additions. */
export class Histogram {
  /** Ascending; a value counts below the first bound that it does not exceed. */
  readonly bounds: readonly number[];
  /** One more than there are bounds: the last is of values above all of them. */
  readonly counts: number[];
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  record(value: number): void {
    const { bounds, counts } = this;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? Infinity)) at++;
    counts[at] = (counts[at] ?? 0) + 1;
    this.sum += value;
  }
}
