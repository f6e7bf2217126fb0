// What the holder of something that expires in Redis may believe.
import { elapsedMs, type Instant } from "../time.ts";

/**
 * Invariant: whoever holds believes so for a shorter time than Redis keeps the key. `askedAt` is read before the grant or
 * renewal is sent, so Redis starts to count later; and the drift is taken off, so Redis' clock may run faster by a
 * hundredth. What was lost or ended is never held again: a late renewal does not bring it back.
 */
export interface LeaseState {
  readonly phase: "held" | "lost" | "ended";
  readonly askedAt: Instant;
  /** For how long after `askedAt` it is held, in milliseconds. */
  readonly validMs: number;
}

/** How much shorter than Redis its holder counts: clocks that run at different speeds, and Redis' milliseconds. */
export function driftMs(ttlMs: number): number {
  return ttlMs * 0.01 + 2;
}

/** A grant or renewal that was asked for at `askedAt` and came before it was over. */
export function heldSince(askedAt: Instant, ttlMs: number): LeaseState {
  return { phase: "held", askedAt, validMs: ttlMs - driftMs(ttlMs) };
}

/** Milliseconds for which it is surely held; 0 when it is not. */
export function remainingMs(state: LeaseState, now: Instant): number {
  if (state.phase !== "held") return 0;
  return Math.max(0, state.validMs - elapsedMs(state.askedAt, now));
}

/** The state when one looks at the clock: over is lost. */
export function looked(state: LeaseState, now: Instant): LeaseState {
  if (state.phase !== "held" || remainingMs(state, now) > 0) return state;
  return { ...state, phase: "lost" };
}

/** A renewal that was asked for at `askedAt` arrived at `now`. */
export function renewed(state: LeaseState, askedAt: Instant, now: Instant): LeaseState {
  const current = looked(state, now);
  if (current.phase !== "held") return current;
  // Answers may overtake each other; the one asked for last counts.
  if (elapsedMs(askedAt, now) >= elapsedMs(current.askedAt, now)) return current;
  return { ...current, askedAt };
}

/** Redis says that it is another's, or nobody's. */
export function refused(state: LeaseState): LeaseState {
  return state.phase === "held" ? { ...state, phase: "lost" } : state;
}

/** Given back by its holder. */
export function ended(state: LeaseState): LeaseState {
  return state.phase === "held" ? { ...state, phase: "ended" } : state;
}
