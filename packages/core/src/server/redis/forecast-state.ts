/** Over how long the long-term rate is an average. */
const LONG_TERM_MS = 5 * 60_000;
/** Samples kept of that time; one of every ten seconds. */
const MAX_SAMPLES = 30;
const SAMPLE_EVERY_MS = LONG_TERM_MS / MAX_SAMPLES;

export interface ForecastOptions {
  /** The maximum is raised when the ids left would not last this long, in milliseconds. */
  readonly raiseBelowMs: number;
  /** How long the ids of one raise should last. */
  readonly raiseByMs: number;
}

/** What Redis had of a sequence at one moment. */
export interface ForecastReading {
  readonly cur: bigint;
  readonly max: bigint;
  readonly generation: bigint;
  /** On a monotonic clock, milliseconds. */
  readonly atMs: number;
}

/** Ids a second. */
interface ForecastRates {
  /** Since the reading before, about a second ago. */
  readonly recently: number;
  /** Over the last five minutes. */
  readonly longTerm: number;
}

interface Sample {
  readonly atMs: number;
  /** Ids issued since watching began. */
  readonly issued: number;
}

/** What a watcher knows of one sequence's use. */
export interface ForecastState {
  readonly last: ForecastReading;
  readonly issued: number;
  /** When watching began, and the long-term rate that the watcher before had. */
  readonly sinceMs: number;
  readonly inheritedRate: number;
  /** Oldest first, all within the last five minutes or so. */
  readonly samples: readonly Sample[];
  readonly rates: ForecastRates;
}

/** Begins to watch. `inheritedRate`: the long-term rate written by whoever watched before. */
export function startForecast(reading: ForecastReading, inheritedRate: number): ForecastState {
  const rates = { recently: 0, longTerm: inheritedRate };
  const samples = [{ atMs: reading.atMs, issued: 0 }];
  return { last: reading, issued: 0, sinceMs: reading.atMs, inheritedRate, samples, rates };
}

/** Takes a reading. Across a new start of Redis nothing is known of what was issued between, and nothing is counted. */
export function observeReading(state: ForecastState, reading: ForecastReading): ForecastState {
  const { last, samples, sinceMs, inheritedRate } = state;
  const elapsedMs = reading.atMs - last.atMs;
  if (elapsedMs <= 0) return state;
  const isSameCount = reading.generation === last.generation && reading.cur >= last.cur;
  const delta = isSameCount ? Number(reading.cur - last.cur) : 0;
  const issued = state.issued + delta;
  const kept = samples.filter(({ atMs }) => reading.atMs - atMs < LONG_TERM_MS);
  const newest = kept.at(-1);
  const isDue = newest === undefined || reading.atMs - newest.atMs >= SAMPLE_EVERY_MS;
  const rates = {
    recently: (delta * 1_000) / elapsedMs,
    longTerm: longTermRate(kept[0] ?? samples.at(-1), issued, reading.atMs, sinceMs, inheritedRate),
  };
  const next = isDue ? [...kept, { atMs: reading.atMs, issued }] : kept;
  return { last: reading, issued, sinceMs, inheritedRate, samples: next, rates };
}

/** The average over five minutes; the part of them before watching began goes by the inherited rate. */
function longTermRate(
  oldest: Sample | undefined,
  issued: number,
  nowMs: number,
  sinceMs: number,
  inheritedRate: number,
): number {
  if (oldest === undefined) return inheritedRate;
  const measured = issued - oldest.issued;
  const unseenMs = Math.max(0, LONG_TERM_MS - (nowMs - sinceMs));
  const seenMs = nowMs - oldest.atMs;
  return (measured * 1_000 + inheritedRate * unseenMs) / (seenMs + unseenMs);
}

/** What a tag says of its raises. */
export interface RaiseBounds {
  /** Fewest ids of one. */
  readonly step: number;
  /** Most ids that are left below the maximum after one. Undefined: any number. */
  readonly maxSkip?: number;
}

/**
 * How far the maximum is to be raised now; 0n when it need not be. What is expected of every second to come is the last
 * one's rate or the long-term rate, whichever is higher. Half a step is always in hand, so that an idle sequence can be
 * asked for ids too. With a bound on what may be left, it is raised to that at most, once half of it is used.
 */
export function raiseWanted(
  state: ForecastState,
  { step, maxSkip }: RaiseBounds,
  options: ForecastOptions,
): bigint {
  const { last, rates } = state;
  const left = last.max > last.cur ? last.max - last.cur : 0n;
  const perSecond = Math.max(rates.recently, rates.longTerm);
  const needed = Math.max(idsFor(perSecond, options.raiseBelowMs), Math.ceil(step / 2));
  const most = maxSkip ?? Number.MAX_SAFE_INTEGER;
  if (left >= BigInt(Math.min(needed, Math.ceil(most / 2)))) return 0n;
  const by = BigInt(Math.max(idsFor(perSecond, options.raiseByMs), step));
  const room = BigInt(most) - left;
  return by < room ? by : room;
}

function idsFor(perSecond: number, durationMs: number): number {
  return Math.min(Math.ceil((perSecond * durationMs) / 1_000), Number.MAX_SAFE_INTEGER);
}
