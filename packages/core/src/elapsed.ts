import type { Clock } from "./ports.ts";

/** Where a clock of elapsed time reads; all in milliseconds. */
export interface TimeSources {
  /** Never goes back, and may stand still while the machine is suspended. */
  readonly monotonicMs: () => number;
  /** Runs on while the machine is suspended, and jumps when somebody sets it. */
  readonly wallMs: () => number;
  /** Time since the machine was started, suspended or not. Reading it may cost thousands of times what the others do. */
  readonly uptimeMs: () => number;
  /** Told when the wall clock went ahead by more than `MAX_LEAP_MS` that neither of the others counted. */
  readonly onLeap?: () => void;
}

/** How far the wall clock may drift from the monotonic one before uptime is looked at. */
const MAX_SKEW_MS = 20;
/** Uptime is looked at this often, whatever the wall clock says. */
const LOOK_EVERY_MS = 1_000;
/** A step of the wall clock by more than this may be a pause of the whole virtual machine, which no other clock counts. */
const MAX_LEAP_MS = 60_000;
/** The wall clock is looked at no more often than this: reading it costs as much again. */
const WALL_EVERY_MS = 1;

/**
 * A monotonic clock that counts time in which the machine was suspended: the larger of the monotonic clock and of uptime.
 *
 * A suspend moves uptime and the wall clock on by the same time at once and leaves the monotonic clock, so uptime, which is
 * read from a file, is looked at only when the other two disagree with what they said before, and once a second. After a
 * suspend it shows at the latest when the machine has run for a millisecond.
 *
 * A step of the wall clock alone moves nothing: it is most likely a clock that was set. But after a pause of a virtual machine
 * the wall clock is the only one that says how long it was, so whoever holds what ages is told.
 */
export function elapsedClock({ monotonicMs, wallMs, uptimeMs, onLeap }: TimeSources): Clock {
  const ahead = uptimeMs() - monotonicMs();
  let suspendedMs = 0;
  let skewMs = wallMs() - monotonicMs();
  let wallAt = -Infinity;
  let lookAt = -Infinity;
  const look = (now: number): void => {
    wallAt = now + WALL_EVERY_MS;
    const skew = wallMs() - now;
    const isSteady = skew - skewMs <= MAX_SKEW_MS && skewMs - skew <= MAX_SKEW_MS;
    if (isSteady && now < lookAt) return;
    const aheadMs = skew - skewMs;
    skewMs = skew;
    lookAt = now + LOOK_EVERY_MS;
    const seenMs = uptimeMs() - ahead - monotonicMs();
    // Uptime is told in steps of 10 ms, which are no suspends.
    const countedMs = Math.max(0, seenMs - suspendedMs);
    if (countedMs > MAX_SKEW_MS) suspendedMs = seenMs;
    if (aheadMs - countedMs > MAX_LEAP_MS) onLeap?.();
  };
  return {
    now() {
      const now = monotonicMs();
      if (now >= wallAt) look(now);
      return now + suspendedMs;
    },
  };
}
