/**
 * Whether a server's wall clock may be used for ids, as pure state: (state, reading, what others show) → refusal or
 * none. It knows no network and no clock.
 * Uniqueness does not rest on this check, but on reservations (lease-state.ts). A server with a wrong clock makes ids
 * of a wrong time. They use up what it could issue once its clock is right again, and the check prevents that.
 *
 * INVARIANTS
 * 1. A server starts only with a clock that has reached the last time it reported before, and that is within
 *    `maxOffsetMs` of the mean of its live peers' clocks. Later on, a peer's wrong clock stops no other server.
 * 2. A clock is never believed more than MAX_JUMP_MS ahead of everything that could confirm it: the store's clock, the
 *    clocks of peers, and the clock itself as it was last confirmed. One of them suffices.
 * 3. What others showed is carried on by the monotonic clock, so that it remains a measure after the wall clock was
 *    set.
 */
export interface ClockCheckState {
  readonly maxOffsetMs: number;
  /** Whether the clock has passed the checks of the start. */
  isStarted: boolean;
  /**
   * The last time that this server reported in an earlier run. Undefined when it is not known, or when the clock has
   * reached it.
   */
  reportedMs: number | undefined;
  store: Sighting | undefined;
  /** Whether the store does not confirm the clock, so that only peers can. */
  isStoreOff: boolean;
  peers: readonly PeerSighting[];
  /** This clock when it was last confirmed. */
  confirmed: Sighting | undefined;
  refusal: ClockRefusal | undefined;
  /** When the refusal began, on the monotonic clock. */
  refusedAt: number;
}

/** What some wall clock showed. */
export interface Sighting {
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  /** When it showed that, on this server's monotonic clock. */
  readonly at: number;
}

export interface PeerSighting extends Sighting {
  /** host:port. */
  readonly peer: string;
}

/**
 * Why a clock is not used.
 * - behind-report: it is behind the last time that this server reported.
 * - off-peers: it differs too much from the mean of the peers' clocks.
 * - ahead: it is too far ahead of all that could confirm it.
 */
export interface ClockRefusal {
  readonly why: "behind-report" | "off-peers" | "ahead";
  /** By how much it is ahead of what it was compared with, in milliseconds; negative when it is behind. */
  readonly driftMs: number;
  /** Each clock it was compared with, in words. */
  readonly detail: string;
}

export type ClockEffect =
  | { readonly type: "refused"; readonly refusal: ClockRefusal }
  | { readonly type: "recovered"; readonly afterMs: number };

/** How far a clock may get ahead of all others before they have to confirm it. */
const MAX_JUMP_MS = 10_000;
/** An older sighting is not used any more. */
const FRESH_MS = 10_000;

/** `reportedMs` is the last time that this server reported in an earlier run, in milliseconds since 1970. */
export function createClockCheckState(
  maxOffsetMs: number,
  reportedMs: number | undefined,
): ClockCheckState {
  return {
    maxOffsetMs,
    isStarted: false,
    reportedMs,
    store: undefined,
    isStoreOff: false,
    peers: [],
    confirmed: undefined,
    refusal: undefined,
    refusedAt: 0,
  };
}

/** Takes note of the store's clock. */
export function sawStore(state: ClockCheckState, sighting: Sighting): void {
  state.store = sighting;
}

/** Takes note of the peers that answered, in place of those that answered before. */
export function sawPeers(state: ClockCheckState, sightings: readonly PeerSighting[]): void {
  state.peers = sightings;
}

/** Whether to ask peers before the next check: at the start, and while nothing else confirms the clock. */
export function wantsPeers(state: ClockCheckState): boolean {
  return !state.isStarted || state.refusal !== undefined || state.isStoreOff;
}

/** Checks the clock. `monotonicMs` is of the same moment as `wallMs`. */
export function checkClock(
  state: ClockCheckState,
  reading: { readonly wallMs: number; readonly monotonicMs: number },
): ClockEffect[] {
  const { wallMs, monotonicMs: now } = reading;
  const refusal =
    behindReport(state, wallMs) ?? offPeers(state, wallMs, now) ?? ahead(state, wallMs, now);
  const before = state.refusal;
  state.refusal = refusal;
  if (refusal !== undefined) {
    if (before?.why === refusal.why) return [];
    if (before === undefined) state.refusedAt = now;
    return [{ type: "refused", refusal }];
  }
  state.isStarted = true;
  state.reportedMs = undefined;
  return before === undefined ? [] : [{ type: "recovered", afterMs: now - state.refusedAt }];
}

/** How far the clock is ahead of the others, in milliseconds; undefined for those that were not seen for a while. */
export function clockOffsets(
  state: ClockCheckState,
  { wallMs, monotonicMs: now }: { readonly wallMs: number; readonly monotonicMs: number },
): { readonly store: number | undefined; readonly peers: number | undefined } {
  const { store } = state;
  const isStoreSeen = store !== undefined && isFresh(store, now);
  return {
    store: isStoreSeen ? wallMs - timeAt(store, now) : undefined,
    peers: meanDrift(freshPeers(state, now), wallMs, now),
  };
}

function meanDrift(
  sightings: readonly Sighting[],
  wallMs: number,
  now: number,
): number | undefined {
  if (sightings.length === 0) return undefined;
  const drifts = sightings.map((sighting) => wallMs - timeAt(sighting, now));
  return drifts.reduce((sum, drift) => sum + drift, 0) / drifts.length;
}

function behindReport({ reportedMs }: ClockCheckState, wallMs: number): ClockRefusal | undefined {
  if (reportedMs === undefined || wallMs >= reportedMs) return undefined;
  const driftMs = wallMs - reportedMs;
  const detail = `the last time this server reported: ${signed(driftMs)}`;
  return { why: "behind-report", driftMs, detail };
}

/** The refusal of a clock that breaks invariant 1; undefined for any other. */
function offPeers(state: ClockCheckState, wallMs: number, now: number): ClockRefusal | undefined {
  const peers = freshPeers(state, now);
  const driftMs = meanDrift(peers, wallMs, now);
  if (state.isStarted || driftMs === undefined) return undefined;
  if (Math.abs(driftMs) <= state.maxOffsetMs) return undefined;
  return { why: "off-peers", driftMs, detail: describePeers(peers, wallMs, now) };
}

/**
 * The refusal of a clock that breaks invariant 2; undefined for any other. A clock that is refused, for whatever
 * reason, is not confirmed.
 */
function ahead(state: ClockCheckState, wallMs: number, now: number): ClockRefusal | undefined {
  const { store, confirmed } = state;
  const peers = freshPeers(state, now);
  const seen: Sighting[] = [...peers];
  const words = peers.length === 0 ? [] : [describePeers(peers, wallMs, now)];
  state.isStoreOff = false;
  if (store !== undefined && isFresh(store, now)) {
    const driftMs = wallMs - timeAt(store, now);
    state.isStoreOff = driftMs > MAX_JUMP_MS;
    seen.push(store);
    words.push(`store: ${signed(driftMs)}`);
  }
  // A clock does not confirm itself while there are others to ask.
  if (seen.length === 0 && confirmed !== undefined) {
    seen.push(confirmed);
    words.push(`this clock before: ${signed(wallMs - timeAt(confirmed, now))}`);
  }
  const driftMs = Math.min(...seen.map((sighting) => wallMs - timeAt(sighting, now)));
  if (seen.length > 0 && driftMs > MAX_JUMP_MS) {
    return { why: "ahead", driftMs, detail: words.join(", ") };
  }
  // With nobody to ask, the clock stays confirmed as of then, so that many small jumps count as one.
  if (seen.length === 0 || seen.some((sighting) => sighting !== confirmed)) {
    state.confirmed = { timeMs: wallMs, at: now };
  }
  return undefined;
}

function freshPeers({ peers }: ClockCheckState, now: number): readonly PeerSighting[] {
  return peers.filter((peer) => isFresh(peer, now));
}

function isFresh({ at }: Sighting, now: number): boolean {
  return now - at <= FRESH_MS;
}

/** What a sighting has come to by now: invariant 3. */
function timeAt({ timeMs, at }: Sighting, now: number): number {
  return timeMs + (now - at);
}

function describePeers(peers: readonly PeerSighting[], wallMs: number, now: number): string {
  return peers.map((peer) => `${peer.peer}: ${signed(wallMs - timeAt(peer, now))}`).join(", ");
}

function signed(driftMs: number): string {
  const ms = Math.round(driftMs);
  return ms < 0 ? `${-ms} ms behind` : `${ms} ms ahead`;
}
