/**
 * When a watch of etcd is begun, and what is made of what it says. Pure: the shell `watch.ts` has the stream and the timers.
 *
 * A watch only makes a poll come sooner. So nothing rests on it, and one that is dead costs the time to the next poll.
 *
 * INVARIANTS
 * 1. Whenever a watch has begun, a poll is asked for: it sees what was changed while nobody watched. So a watch begins at the
 *    present revision, and needs no earlier one, which etcd may have compacted.
 * 2. One stream at a time; each has a token, and what an earlier one says later is not heard.
 * 3. A watch that ends is begun again after a pause, which doubles up to MAX_PAUSE_MS until one has lasted for STEADY_MS. One
 *    that does not begin within BEGIN_MS has ended.
 */
export interface WatchState {
  phase: "begun" | "beginning" | "closed" | "resting";
  token: number;
  /** Keys whose watches are not begun yet. */
  missing: number;
  /** Watches in a row that did not last. */
  failures: number;
  begunAt: number;
}

export type WatchEffect =
  /** Begin a stream, and tell of it with this token. */
  | { readonly type: "begin"; readonly token: number }
  /** End the stream with this token, if there is one. */
  | { readonly type: "end"; readonly token: number }
  | { readonly type: "wake"; readonly token: number; readonly afterMs: number }
  | { readonly type: "heard" };

const BEGIN_MS = 10_000;
const STEADY_MS = 10_000;
const FIRST_PAUSE_MS = 200;
export const MAX_PAUSE_MS = 10_000;

export function createWatchState(): WatchState {
  return { phase: "resting", token: 0, missing: 0, failures: 0, begunAt: 0 };
}

/** The time to begin has come, or that by which a stream has to have begun. `keys`: how many there are. */
export function woke(
  state: WatchState,
  token: number,
  keys: number,
  random: number,
): WatchEffect[] {
  if (token !== state.token) return [];
  if (state.phase === "beginning") return ended(state, token, 0, random);
  if (state.phase !== "resting") return [];
  state.phase = "beginning";
  state.token++;
  state.missing = keys;
  const { token: next } = state;
  return [
    { type: "begin", token: next },
    { type: "wake", token: next, afterMs: BEGIN_MS },
  ];
}

/** etcd said something. `created`: that it watches one of the keys. */
export function told(
  state: WatchState,
  token: number,
  { created, changed }: { readonly created: boolean; readonly changed: boolean },
  now: number,
): WatchEffect[] {
  if (token !== state.token || (state.phase !== "beginning" && state.phase !== "begun")) return [];
  let hasBegun = false;
  if (created && state.phase === "beginning" && --state.missing === 0) {
    state.phase = "begun";
    state.begunAt = now;
    hasBegun = true;
  }
  return hasBegun || changed ? [{ type: "heard" }] : [];
}

/** A stream ended. `random`: 0 to 1. */
export function ended(
  state: WatchState,
  token: number,
  now: number,
  random: number,
): WatchEffect[] {
  if (token !== state.token || (state.phase !== "beginning" && state.phase !== "begun")) return [];
  const hasLasted = state.phase === "begun" && now - state.begunAt >= STEADY_MS;
  state.failures = hasLasted ? 1 : state.failures + 1;
  state.phase = "resting";
  // What the stream may still say is not heard.
  state.token++;
  const pauseMs = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (state.failures - 1));
  return [
    { type: "end", token },
    // All servers may have lost the same member at once.
    { type: "wake", token: state.token, afterMs: pauseMs * (0.5 + random / 2) },
  ];
}

export function close(state: WatchState): WatchEffect[] {
  const { token } = state;
  state.phase = "closed";
  state.token++;
  return [{ type: "end", token }];
}
