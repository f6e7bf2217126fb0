import type { AlarmChange } from "./alarm-of.ts";
import type { AlarmContent } from "./alarm.ts";

/**
 * What a person should know of now, whether somebody is told of it by a webhook or not. Pure.
 *
 * INVARIANTS
 * 1. A trouble or a lasting alarm is there from when it was raised until something is over with its key.
 * 2. Any other alarm is there for RECENT_MS.
 * 3. There are MAX_ACTIVE at most; the oldest one leaves first.
 */
export type ActiveState = Map<string, Active>;

export interface Active {
  readonly content: AlarmContent;
  /** By the wall clock. */
  readonly sinceMs: number;
  readonly isLasting: boolean;
  /** By the monotonic clock: when it was last raised. */
  readonly at: number;
}

const RECENT_MS = 900_000;
const MAX_ACTIVE = 1_000;

export function activated(
  state: ActiveState,
  change: AlarmChange,
  now: number,
  wallMs: number,
): void {
  if (change.type === "over") {
    state.delete(change.key);
    return;
  }
  const isLasting = change.type === "trouble" || change.isLasting;
  if (change.type === "alarm" && change.ends !== undefined) state.delete(change.ends);
  const { content } = change;
  const known = state.get(content.key);
  // What goes on began when it was first told.
  const sinceMs = isLasting && known?.isLasting === true ? known.sinceMs : wallMs;
  state.delete(content.key);
  state.set(content.key, { content, sinceMs, isLasting, at: now });
  const [oldest] = state.keys();
  if (state.size > MAX_ACTIVE && oldest !== undefined) state.delete(oldest);
}

/** At most `limit` of them, the one that was raised last first. */
export function activeNow(state: ActiveState, now: number, limit: number): readonly Active[] {
  for (const [key, { isLasting, at }] of state) {
    if (!isLasting && now - at >= RECENT_MS) state.delete(key);
  }
  return [...state.values()].toReversed().slice(0, limit);
}
