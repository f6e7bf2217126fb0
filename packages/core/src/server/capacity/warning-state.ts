import type { Horizon } from "./horizons.ts";

/**
 * When a person is told that a tag runs out: as its end comes nearer than 30 days, and again at 7.
 *
 * INVARIANTS
 * 1. A threshold is told once, until the end is well beyond it again.
 * 2. Nobody is told on the word of a rate that was watched for less than a fiftieth of the time that it foretells: three
 *    hours for a week, fourteen for a month, two minutes for an hour and a half.
 */
export interface WarningState {
  /** Days of the nearest threshold that was told; undefined: none. */
  told: number | undefined;
}

/** What to tell. */
export interface Warning {
  /** The end is nearer than this. */
  readonly days: number;
  readonly horizon: Horizon;
  readonly runsOutAtMs: number;
}

/** Days before the end, the first to be told first. */
const THRESHOLDS: readonly number[] = [30, 7];
const DAY_MS = 86_400_000;
/** How much further away the end must be than a threshold before that is told again. */
const AGAIN = 1.25;
const FORETELLS = 50;

export function createWarningState(): WarningState {
  return { told: undefined };
}

/** What is to be told now of a tag's ends; undefined: nothing. */
export function warningOf(
  state: WarningState,
  horizons: readonly Horizon[],
  { nowMs, watchedMs }: { readonly nowMs: number; readonly watchedMs: number },
): Warning | undefined {
  const end = nearestEnd(horizons);
  const leftMs = (end?.runsOutAtMs ?? Infinity) - nowMs;
  const isAway = (days: number): boolean => leftMs > days * DAY_MS * AGAIN;
  if (state.told !== undefined && isAway(state.told)) {
    // What is still near of the other thresholds counts as told.
    state.told = THRESHOLDS.findLast((days) => !isAway(days));
  }
  const days = THRESHOLDS.findLast((threshold) => leftMs <= threshold * DAY_MS);
  if (days === undefined || end?.runsOutAtMs === undefined) return undefined;
  if (state.told !== undefined && state.told <= days) return undefined;
  // Invariant 2. The bits of time end whatever the rate is, and what is gone is gone.
  const isForetold = end.limit !== "TIME_BITS" && end.left !== 0n;
  if (isForetold && leftMs > watchedMs * FORETELLS) return undefined;
  state.told = days;
  return { days, horizon: end, runsOutAtMs: end.runsOutAtMs };
}

/** The end after which there are no ids. Columns are outgrown without a call being refused, and Redis' maximum is raised. */
function nearestEnd(horizons: readonly Horizon[]): Horizon | undefined {
  return horizons.find(({ limit }) => limit === "CEILING" || limit === "TIME_BITS");
}
