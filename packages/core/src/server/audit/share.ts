/**
 * How many of its newest rows each principal keeps, where all together may have `keep`. Undefined: there are more principals
 * than rows may be kept, so the oldest rows go, whoever's they are. Pure.
 *
 * INVARIANT: among n principals nobody's rows push out one of the newest `keep` ÷ n rows of another. Whoever has fewer rows
 * leaves the rest of that to the others.
 */
export function auditShare(counts: readonly number[], keep: number): number | undefined {
  let left = keep;
  const ascending = counts.toSorted((a, b) => a - b);
  for (const [at, count] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - at));
    if (share === 0) return undefined;
    if (count > share) return share;
    left -= count;
  }
  return Infinity;
}
