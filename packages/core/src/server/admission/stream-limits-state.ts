/** Calls that a narrow caller may have in flight, on all its connections together. */
export const NARROW_STREAMS = 96;

/** How many calls callers may have in flight on their connections. */
export interface StreamLimitOptions {
  /** A caller becomes narrow when so many of its refusals are held. */
  readonly heldMost: number;
  /** On each connection at least, however many there are. */
  readonly least: number;
  /** A caller is narrow no more when it was refused nothing, and had less than half of that in flight, for so long. */
  readonly calmMs: number;
}

/** What a caller has open. */
export interface CallerStreams {
  readonly connections: number;
  readonly inFlight: number;
  /** Of those, refusals that are held. */
  readonly held: number;
}

/**
 * Callers whose refusals pile up get narrow connections: each call that waits for its refusal costs memory, and the garbage
 * collector's time with it, which other callers feel. Further calls of theirs wait on their side. Pure.
 *
 * INVARIANTS
 * 1. Only callers whose refusals pile up become narrow, and only callers with connections are kept.
 * 2. A caller that is refused, or fills what it may have, stays narrow: it would pile up as much again.
 */
export interface StreamLimitsState {
  readonly options: StreamLimitOptions;
  /** Narrow callers, and when each was refused or had much in flight for the last time. */
  readonly narrow: Map<string, number>;
}

export function createStreamLimitsState(options: StreamLimitOptions): StreamLimitsState {
  return { options, narrow: new Map() };
}

/**
 * To be called about once a second, with all callers that have connections. Answers how many calls each connection of a
 * narrow caller may have in flight.
 */
export function lookAtStreams(
  { narrow, options }: StreamLimitsState,
  callers: ReadonlyMap<string, CallerStreams>,
  now: number,
): ReadonlyMap<string, number> {
  // Invariant 1.
  for (const caller of narrow.keys()) if (!callers.has(caller)) narrow.delete(caller);
  const limits = new Map<string, number>();
  for (const [caller, { connections, inFlight, held }] of callers) {
    if (!narrow.has(caller) && held < options.heldMost) continue;
    // Invariant 2.
    const isBusy = held > 0 || inFlight * 2 >= NARROW_STREAMS;
    const busyAt = isBusy ? now : (narrow.get(caller) ?? now);
    narrow.set(caller, busyAt);
    if (now - busyAt >= options.calmMs) narrow.delete(caller);
    else limits.set(caller, Math.max(options.least, Math.floor(NARROW_STREAMS / connections)));
  }
  return limits;
}
