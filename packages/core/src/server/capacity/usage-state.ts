/**
 * How fast the ids of a tag are used up, told from looks at how many are gone. Pure: who looks says when.
 *
 * The store hands ids out in steps, a segment at a time, so what is gone rises in jumps. A rate is counted from jump to
 * jump, where the ids handed out by one are about used up by the next. Counted from look to look, a watch of a minute would
 * see no jump at all, or one and take it for a minute's use.
 *
 * INVARIANTS
 * 1. A usage is of one epoch and one period. What an operator raises a floor by, or a period begins anew, is nobody's use.
 * 2. It holds at most MAX_STEPS steps, however long it is watched. Old ones lie further apart than new ones.
 * 3. No rate is told before something was seen to be used.
 */
export interface Usage {
  readonly epoch: bigint;
  /** First day of the tag's period; empty without periods. */
  readonly period: string;
  /** When the first look was. */
  readonly startedAt: number;
  /** The first look, and after it those that found more ids gone, or fewer; oldest first. */
  steps: readonly Step[];
  seenAt: number;
}

/** What one look found: all ids up to `used` are gone. */
interface Step {
  /** On a monotonic clock, in milliseconds. */
  readonly at: number;
  readonly used: bigint;
}

/** What a look found, and of which epoch and period. */
export interface Look extends Step {
  readonly epoch: bigint;
  readonly period: string;
}

/** A rate, and what it rests on. */
export interface UseRate {
  readonly idsPerSecond: number;
  /** For how long it was watched, in milliseconds. */
  readonly watchedMs: number;
}

export const MAX_STEPS = 64;
const DAY_MS = 86_400_000;
/** The rate is the higher one of these last stretches: a week has quiet days, and a day may be the first busy one. */
const WINDOWS_MS: readonly number[] = [7 * DAY_MS, DAY_MS];

/** Takes note of a look. `usage`: undefined at the first one. */
export function sawUsed(usage: Usage | undefined, look: Look): Usage {
  const { at, used, epoch, period } = look;
  // Invariant 1.
  if (usage === undefined || usage.epoch !== epoch || usage.period !== period) {
    return { epoch, period, startedAt: at, steps: [{ at, used }], seenAt: at };
  }
  usage.seenAt = at;
  const last = usage.steps.at(-1);
  if (last?.used !== used) usage.steps = thinned([...usage.steps, { at, used }], at);
  return usage;
}

/** The rate at which ids are used; undefined while nothing was seen to be used. */
export function rateOf(usage: Usage): UseRate | undefined {
  let highest: UseRate | undefined;
  for (const windowMs of WINDOWS_MS) {
    const rate = rateSince(usage, usage.seenAt - windowMs);
    if (rate !== undefined && rate.idsPerSecond > (highest?.idsPerSecond ?? 0)) highest = rate;
  }
  return highest;
}

function rateSince(usage: Usage, sinceMs: number): UseRate | undefined {
  const { startedAt, seenAt } = usage;
  const before = usage.steps.findLastIndex(({ at }) => at <= sinceMs);
  const steps = usage.steps.slice(Math.max(0, before));
  // The first look does not know how much of the last jump was used by then, so two later jumps say more than it does.
  const from = steps.length > 2 && before < 0 ? steps[1] : steps[0];
  const last = steps.at(-1);
  const jumpedFrom = steps.at(-2);
  if (from === undefined || last === undefined || jumpedFrom === undefined) return undefined;
  const used = Number(last.used - from.used);
  if (used <= 0) return undefined;
  const watchedMs = seenAt - from.at;
  // By now at most the last jump is used up too. So a rate falls while nothing more is taken.
  const jump = Math.max(0, Number(last.used - jumpedFrom.used));
  const isFromLook = from.at === startedAt;
  const byJumps = isFromLook ? Infinity : used / (last.at - from.at);
  const byNow = (isFromLook ? used : used + jump) / watchedMs;
  const idsPerSecond = Math.min(byJumps, byNow) * 1_000;
  return Number.isFinite(idsPerSecond) ? { idsPerSecond, watchedMs } : undefined;
}

/** Invariant 2: leaves out the step that is missed least, the one nearest to its neighbours for its age. */
function thinned(steps: readonly Step[], now: number): readonly Step[] {
  const [, second] = steps;
  const longest = Math.max(...WINDOWS_MS);
  // The step from which the longest stretch is counted stays.
  const fresh = second !== undefined && second.at <= now - longest ? steps.slice(1) : steps;
  if (fresh.length <= MAX_STEPS) return fresh;
  let least = Infinity;
  let missed = 2;
  for (let at = 2; at < fresh.length - 2; at++) {
    const [before, step, after] = [fresh[at - 1], fresh[at], fresh[at + 1]];
    if (before === undefined || step === undefined || after === undefined) continue;
    const share = (after.at - before.at) / (now - step.at);
    if (share >= least) continue;
    least = share;
    missed = at;
  }
  return fresh.toSpliced(missed, 1);
}
