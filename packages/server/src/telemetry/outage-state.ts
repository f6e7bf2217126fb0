/**
 * What the log tells of a store that fails, so that an outage does not flood it. Pure: `outages.ts` writes the lines.
 *
 * An outage is of whatever fails at a time: polls, loads of many tags, looks at the list of callers. It has one line when it
 * begins, one a minute that counts, and one at its end.
 *
 * INVARIANTS
 * - However much fails, the lines of an outage are two and one a minute. What is remembered has a limit.
 * - It ends when all that failed works again; polls that work again end it for all. What may never be tried again, as the tag
 *   of a caller who has left, keeps it open without a line, and the next failure after a quiet minute begins another one.
 */
export interface OutageState {
  since: number;
  toldAt: number;
  failedAt: number;
  /** What failed and has not worked since. */
  readonly failing: Set<string>;
  /** Failures since the beginning, by kind. */
  readonly counts: Map<string, number>;
  isOpen: boolean;
}

/** Time between the lines of an outage that goes on, and time without a failure after which the next one is of another outage. */
const EVERY_MS = 60_000;
/** After an outage the last of what it broke may still fail, such as loads that were under way. */
const GRACE_MS = 3_000;
const MAX_FAILING = 10_000;
/** Subject of polls. They are told of by themselves, so none of them counts as late. */
export const POLLS = "polls";

export function createOutageState(): OutageState {
  return {
    since: 0,
    toldAt: 0,
    failedAt: -Infinity,
    failing: new Set(),
    counts: new Map(),
    isOpen: false,
  };
}

/** Something failed. `subject`: what has to work again; undefined for what is not tried by itself. Answers what to tell. */
export function failed(
  state: OutageState,
  kind: string,
  subject: string | undefined,
  now: number,
): "begin" | "go-on" | undefined {
  const isQuiet = now - state.failedAt >= EVERY_MS;
  if (!state.isOpen && subject !== POLLS && now - state.failedAt < GRACE_MS) return undefined;
  state.failedAt = now;
  const begins = !state.isOpen || isQuiet;
  if (begins) begin(state, now);
  state.counts.set(kind, (state.counts.get(kind) ?? 0) + 1);
  if (subject !== undefined && state.failing.size < MAX_FAILING) state.failing.add(subject);
  if (begins) return "begin";
  if (now - state.toldAt < EVERY_MS) return undefined;
  state.toldAt = now;
  return "go-on";
}

/** It works again. True: with it everything does. */
export function worked(state: OutageState, subject: string, now: number): boolean {
  if (!state.failing.delete(subject) || state.failing.size > 0) return false;
  return ended(state, now);
}

/** Everything works again. True if anything had failed. */
export function ended(state: OutageState, now: number): boolean {
  if (!state.isOpen) return false;
  state.isOpen = false;
  state.failing.clear();
  state.failedAt = now;
  return true;
}

function begin(state: OutageState, now: number): void {
  state.isOpen = true;
  state.since = now;
  state.toldAt = now;
  state.failing.clear();
  state.counts.clear();
}
