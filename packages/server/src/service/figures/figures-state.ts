/**
 * What a process counted, second by second. Pure; `figures.ts` is the shell, which takes a sample each second.
 *
 * INVARIANTS
 * 1. No count is lost and none is told twice: a second has what was counted since the sample before.
 * 2. A second without a sample is missing; it is never told as 0.
 * 3. What is kept has a fixed size: KEPT_SECONDS of everything, MAX_REASONS reasons, MAX_WATCHED tags.
 * 4. Seconds of one run follow each other, by the monotonic clock and by what the wall clock was taken to show.
 */
export interface FiguresState {
  /** Monotonic seconds, each in its place; −1: none yet. */
  readonly seconds: Float64Array;
  /** What the wall clock showed then, in whole seconds since 1970. */
  readonly labels: Float64Array;
  readonly counts: Readonly<Record<CountName, Float64Array>>;
  readonly gauges: Readonly<Record<GaugeName, Float32Array>>;
  /** Refused calls of each second, by reason; a reason gets its place when it is first seen. */
  readonly refusals: Map<string, Uint32Array>;
  /** Calls for ids by how long they took: `buckets` numbers for each second. Empty: calls are not timed. */
  readonly times: Uint32Array;
  readonly bounds: readonly number[];
  /** The tags that were asked for, the one that was asked for last at the end. */
  readonly tags: Map<string, WatchedTag>;
  /** The last sample. */
  last: Sample;
}

/** Totals since the start of the process. */
interface Totals {
  readonly issued: number;
  readonly calls: number;
  readonly refused: number;
}
type CountName = keyof Totals;

/** How it is at the moment of a sample. */
interface Gauges {
  readonly loopDelayMicros: number;
  readonly loopBusyPermille: number;
  readonly waiting: number;
}
type GaugeName = keyof Gauges;

/** A look at everything that is counted. */
export interface Sample extends Totals, Gauges {
  /** The second that is over, by the monotonic clock, whole. */
  readonly second: number;
  /** When it began by the wall clock, since 1970. */
  readonly wallMs: number;
  /** Totals by reason. */
  readonly refusals: ReadonlyMap<string, number>;
  /** Totals of calls for ids by how long they took; undefined: calls are not timed. */
  readonly times: readonly number[] | undefined;
}

/** What counts a tag's ids: one that was left and is worked with again has another, which begins at 0. */
export interface CountedTag {
  readonly issued: number;
}

/** A tag's ids as they are now. */
export interface TagLook {
  readonly counted: CountedTag | undefined;
  /** Ids in memory; undefined: its kind holds none. */
  readonly ready: number | undefined;
}

interface WatchedTag {
  /** Each sample from this second on counted it. */
  readonly since: number;
  readonly issued: Float64Array;
  /** NaN: its kind holds none. */
  readonly ready: Float32Array;
  counted: CountedTag | undefined;
  /** What it had issued at the last sample. */
  seen: number;
}

export const KEPT_SECONDS = 900;
/** Tags whose figures are kept. Of more, the one that was asked for the longest time ago leaves. */
export const MAX_WATCHED = 64;
/** Reasons with figures of their own, more than servers refuse calls with. `refused` counts all of them anyway. */
const MAX_REASONS = 48;
/** How far the wall clock may be from what it was taken to show before it counts as set, in seconds. */
const MAX_DRIFT_S = 1;

const COUNTS: readonly CountName[] = ["issued", "calls", "refused"];
const GAUGES: readonly GaugeName[] = ["loopDelayMicros", "loopBusyPermille", "waiting"];

/** A column for each name. */
function columns<Name extends string, Of>(
  names: readonly Name[],
  make: () => Of,
): Readonly<Record<Name, Of>> {
  return Object.fromEntries(names.map((name) => [name, make()])) as Record<Name, Of>;
}

/** `first` is taken when counting begins. `bounds`: of how long calls take, in seconds. */
export function createFiguresState(first: Sample, bounds: readonly number[]): FiguresState {
  return {
    seconds: new Float64Array(KEPT_SECONDS).fill(-1),
    labels: new Float64Array(KEPT_SECONDS),
    counts: columns(COUNTS, () => new Float64Array(KEPT_SECONDS)),
    gauges: columns(GAUGES, () => new Float32Array(KEPT_SECONDS)),
    refusals: new Map(),
    times: new Uint32Array(first.times === undefined ? 0 : KEPT_SECONDS * first.times.length),
    bounds,
    tags: new Map(),
    last: kept(first),
  };
}

/** Takes a sample. One of a second that has one already is left for the next second to count. */
export function sampled(
  state: FiguresState,
  sample: Sample,
  lookAt: (tag: string) => TagLook,
): void {
  const { last, seconds, labels } = state;
  const { second } = sample;
  if (second <= last.second) return;
  const at = second % KEPT_SECONDS;
  labels[at] = labelOf(state, sample);
  seconds[at] = second;
  for (const name of COUNTS) state.counts[name][at] = sample[name] - last[name];
  for (const name of GAUGES) state.gauges[name][at] = sample[name];
  sampleRefusals(state, sample, at);
  sampleTimes(state, sample, at);
  for (const [name, tag] of state.tags) sampleTag(tag, second, lookAt(name));
  state.last = kept(sample);
}

/** The counts go on in the map that a sample came with. */
function kept(sample: Sample): Sample {
  return { ...sample, refusals: new Map(sample.refusals) };
}

/**
 * Invariant 4. The wall clock is read a little later or earlier in each second, and it is slewed. So the next second has
 * the next label unless the clock is far from it.
 */
function labelOf({ last, labels, seconds }: FiguresState, { second, wallMs }: Sample): number {
  const before = last.second % KEPT_SECONDS;
  const shown = wallMs / 1_000;
  if (seconds[before] !== last.second) return Math.floor(shown);
  const next = (labels[before] ?? 0) + second - last.second;
  const isTrue = Math.abs(shown - next - 0.5) <= MAX_DRIFT_S;
  return isTrue ? next : Math.floor(shown);
}

function sampleRefusals({ refusals, last }: FiguresState, sample: Sample, at: number): void {
  for (const column of refusals.values()) column[at] = 0;
  for (const [reason, total] of sample.refusals) {
    const count = total - (last.refusals.get(reason) ?? 0);
    if (count === 0) continue;
    let column = refusals.get(reason);
    if (column === undefined) {
      if (refusals.size >= MAX_REASONS) continue;
      column = new Uint32Array(KEPT_SECONDS);
      refusals.set(reason, column);
    }
    column[at] = count;
  }
}

function sampleTimes({ times, last }: FiguresState, sample: Sample, at: number): void {
  const buckets = sample.times ?? [];
  for (const [bucket, total] of buckets.entries()) {
    times[at * buckets.length + bucket] = total - (last.times?.[bucket] ?? 0);
  }
}

/** Invariant 1: what was left since the last sample is counted to its end. */
function sampleTag(tag: WatchedTag, second: number, { counted, ready }: TagLook): void {
  const at = second % KEPT_SECONDS;
  const ended = (tag.counted?.issued ?? 0) - tag.seen;
  const begun = counted === undefined || counted === tag.counted ? 0 : counted.issued;
  tag.issued[at] = ended + begun;
  tag.ready[at] = ready ?? Number.NaN;
  tag.counted = counted;
  tag.seen = counted?.issued ?? 0;
}

/** A tag is asked for: from now on it is counted. */
export function watchTag(state: FiguresState, name: string, look: () => TagLook): void {
  const known = state.tags.get(name);
  state.tags.delete(name);
  state.tags.set(name, known ?? beginTag(look(), state.last.second + 1));
  const [oldest] = state.tags.keys();
  // Invariant 3.
  if (state.tags.size > MAX_WATCHED && oldest !== undefined) state.tags.delete(oldest);
}

function beginTag({ counted }: TagLook, since: number): WatchedTag {
  return {
    since,
    issued: new Float64Array(KEPT_SECONDS),
    ready: new Float32Array(KEPT_SECONDS),
    counted,
    seen: counted?.issued ?? 0,
  };
}

/** Places in the ring whose seconds follow each other. */
interface Stretch {
  /** By the wall clock, since 1970. */
  readonly startSecond: number;
  readonly places: readonly number[];
}

/** Seconds that follow each other, with a number for each in every list. */
export interface FigureRun {
  /** By the wall clock, since 1970. */
  readonly startSecond: number;
  readonly issued: readonly number[];
  readonly calls: readonly number[];
  readonly refused: readonly number[];
  /** Without those of which there were none. */
  readonly refusals: readonly { readonly reason: string; readonly calls: readonly number[] }[];
  /** Undefined: there were no calls. Empty: calls are not timed. */
  readonly latencies: readonly (Latency | undefined)[];
  readonly loopDelayMicros: readonly number[];
  readonly loopBusyPermille: readonly number[];
  readonly waiting: readonly number[];
}

export interface Latency {
  readonly p50Micros: number;
  readonly p99Micros: number;
}

/** The runs of the last `count` seconds before `now`, a monotonic second that is not over yet. */
export function figureRuns(state: FiguresState, now: number, count: number): readonly FigureRun[] {
  return stretches(state, now - count, now).map(({ startSecond, places }) => {
    const of = (column: ArrayLike<number>): readonly number[] =>
      places.map((at) => column[at] ?? 0);
    const { counts, gauges } = state;
    return {
      startSecond,
      issued: of(counts.issued),
      calls: of(counts.calls),
      refused: of(counts.refused),
      refusals: [...state.refusals]
        .map(([reason, column]) => ({ reason, calls: of(column) }))
        .filter(({ calls }) => calls.some((each) => each > 0)),
      latencies: isTimed(state) ? places.map((at) => latencyAt(state, [at])) : [],
      loopDelayMicros: of(gauges.loopDelayMicros),
      loopBusyPermille: of(gauges.loopBusyPermille),
      waiting: of(gauges.waiting),
    };
  });
}

/** How long calls for ids took in all of those seconds together; undefined: there were none, or they are not timed. */
export function latencyOf(state: FiguresState, now: number, count: number): Latency | undefined {
  if (!isTimed(state)) return undefined;
  const all = stretches(state, now - count, now).flatMap(({ places }) => places);
  return latencyAt(state, all);
}

/** Ids of a tag in seconds that follow each other. */
export interface TagFigureRun {
  readonly startSecond: number;
  readonly issued: readonly number[];
  readonly ready: readonly number[];
  /** How long they last, in seconds; undefined: for ever, or there are never any. */
  readonly remaining: readonly (number | undefined)[];
}

/** How many seconds the rate is taken of by which remaining ids are judged. */
const RATE_OVER_S = 60;

/** The same of a tag; empty when it is not watched. */
export function tagFigureRuns(
  state: FiguresState,
  name: string,
  now: number,
  count: number,
): readonly TagFigureRun[] {
  const tag = state.tags.get(name);
  if (tag === undefined) return [];
  return stretches(state, Math.max(tag.since, now - count), now).map(({ startSecond, places }) => ({
    startSecond,
    issued: places.map((at) => tag.issued[at] ?? 0),
    ready: places.map((at) => tag.ready[at] || 0),
    remaining: places.map((at) => remainingAt(state, tag, at)),
  }));
}

/** What is in memory at a second, by the average of what was issued in the seconds up to it. */
function remainingAt(
  { seconds }: FiguresState,
  { since, issued, ready }: WatchedTag,
  at: number,
): number | undefined {
  const second = seconds[at] ?? 0;
  const left = ready[at] ?? Number.NaN;
  let ids = 0;
  let counted = 0;
  for (let of = second; of > second - RATE_OVER_S && of >= since; of--) {
    const place = of % KEPT_SECONDS;
    if (seconds[place] !== of) continue;
    ids += issued[place] ?? 0;
    counted++;
  }
  return ids === 0 || Number.isNaN(left) ? undefined : (left * counted) / ids;
}

/** Invariants 2 and 4. */
function stretches(
  { seconds, labels }: FiguresState,
  from: number,
  until: number,
): readonly Stretch[] {
  const all: { startSecond: number; readonly places: number[] }[] = [];
  for (let second = Math.max(0, from); second < until; second++) {
    const at = second % KEPT_SECONDS;
    if (seconds[at] !== second) continue;
    const label = labels[at] ?? 0;
    const last = all.at(-1);
    const lastAt = last?.places.at(-1) ?? -1;
    const follows =
      last !== undefined &&
      seconds[lastAt] === second - 1 &&
      last.startSecond + last.places.length === label;
    if (follows) last.places.push(at);
    else all.push({ startSecond: label, places: [at] });
  }
  return all;
}

function isTimed({ times }: FiguresState): boolean {
  return times.length > 0;
}

function latencyAt(
  { times, bounds }: FiguresState,
  places: readonly number[],
): Latency | undefined {
  const counts = Array.from({ length: times.length / KEPT_SECONDS }, (_, bucket) =>
    places.reduce((sum, at) => sum + (times[at * (bounds.length + 1) + bucket] ?? 0), 0),
  );
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  return {
    p50Micros: Math.round(quantile(bounds, counts, total * 0.5) * 1e6),
    p99Micros: Math.round(quantile(bounds, counts, total * 0.99) * 1e6),
  };
}

/** The value below which `rank` of the counted ones lie, evenly spread within each bucket; at most the last bound. */
function quantile(bounds: readonly number[], counts: readonly number[], rank: number): number {
  let below = 0;
  for (const [bucket, count] of counts.entries()) {
    const upper = bounds[bucket];
    if (upper === undefined) break;
    if (count > 0 && below + count >= rank) {
      const lower = bounds[bucket - 1] ?? 0;
      return lower + ((upper - lower) * (rank - below)) / count;
    }
    below += count;
  }
  return bounds.at(-1) ?? 0;
}
