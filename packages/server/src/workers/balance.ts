/** What the choice of a worker rests on. */
export interface Candidate {
  /** Connections it has. */
  readonly open: number;
  /** Whether its own health says SERVING. */
  readonly isReady: boolean;
  /** Whether it has not been heard of for a while: it hangs, or was stopped. */
  readonly isSilent: boolean;
}

/**
 * Which worker gets the next connection: of the best there are, the one with the fewest; of these the next one after
 * `last`. Undefined when no worker takes any (undefined: it has no process that serves).
 *
 * The best are those that are ready. A worker that cannot reach the store still answers for itself, so it is better than
 * none, and so is, in the end, one that is silent.
 *
 * Connections of gRPC are few and live long, so that they must be even: taking turns goes wrong as connections end, and
 * the kernel's choice (SO_REUSEPORT) is a throw of dice for each.
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
