/** Steps of 100 nanoseconds in a millisecond. */
const STEPS = 10_000;

/** The time of the last UUID of version 1 or 6 that a process made. */
export interface GregorianState {
  /** Milliseconds since 1970. */
  ms: number;
  /** 0 … 9,999, steps of 100 nanoseconds within the millisecond. */
  steps: number;
}

/** State of a process that has made none. */
export function createGregorianState(): GregorianState {
  return { ms: -1, steps: 0 };
}

/**
 * Moves on to the time of the next UUID of version 1 or 6.
 *
 * INVARIANT: times strictly increase, so that with one clock sequence and node no UUID is made twice, and those of version 6
 * increase. A clock that went back, or more than 10,000 in a millisecond, is carried on from the last time.
 */
export function nextGregorian(state: GregorianState, nowMs: number): void {
  if (nowMs > state.ms) {
    state.ms = nowMs;
    state.steps = 0;
  } else if (state.steps === STEPS - 1) {
    state.ms++;
    state.steps = 0;
  } else {
    state.steps++;
  }
}
