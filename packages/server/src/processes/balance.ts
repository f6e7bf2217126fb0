/** What the choice of a process depends on. */
export interface Candidate {
  /** Connections it has. */
  readonly open: number;
  /** Whether its own health says SERVING. */
  readonly isReady: boolean;
  /** Whether it has been silent for a while, because it hangs or was stopped. */
  readonly isSilent: boolean;
}

/**
 * Chooses the process for the next connection: among the best, the one with the fewest connections; among equals, the
 * next one after `last`. Answers undefined when no process takes any (a candidate is undefined without a serving process).
 *
 * The best are those that are ready. A process that cannot reach the store still answers for itself, so it is better than
 * none, and so is, in the end, one that is silent.
 *
 * Connections of gRPC are few and live long, so they must be spread evenly. Taking turns becomes uneven as connections
 * end, and the kernel's choice (SO_REUSEPORT) is random for each.
 */
export function pick(
  candidates: readonly (Candidate | undefined)[],
  last: number,
): number | undefined {
  let best: number | undefined;
  for (let step = 1; step <= candidates.length; step++) {
    const at = (last + step) % candidates.length;
    const candidate = candidates[at];
    if (candidate === undefined) continue;
    const chosen = best === undefined ? undefined : candidates[best];
    if (chosen === undefined || isBetter(candidate, chosen)) best = at;
  }
  return best;
}

function isBetter(one: Candidate, other: Candidate): boolean {
  const difference = rank(one) - rank(other);
  return difference === 0 ? one.open < other.open : difference < 0;
}

function rank({ isReady, isSilent }: Candidate): number {
  if (isSilent) return 2;
  return isReady ? 0 : 1;
}
