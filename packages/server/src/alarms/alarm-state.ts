import type { AlarmContent } from "./alarm.ts";
import type { AlarmChange } from "./alarm-of.ts";

/** Alarms with the same key within this time are one, in milliseconds. */
const ONE_ALARM_MS = 60_000;
/** Most keys that are remembered. Beyond that the oldest is forgotten, and may be told once more. */
const MAX_REMEMBERED = 10_000;
/** Most alarms that wait in memory. Further ones are dropped, each with a line in the log. */
const MAX_WAITING = 1_000;
/** An alarm that could not be delivered for this long is dropped, with a line in the log: it is no longer news. */
const MAX_AGE_MS = 86_400_000;
const MIN_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

/** When each key was last told, in that order. */
export type Recent = Map<string, number>;

export function isRecent(recent: Recent, key: string, now: number): boolean {
  const at = recent.get(key);
  return at !== undefined && now - at < ONE_ALARM_MS;
}

export function remember(recent: Recent, key: string, now: number): void {
  recent.delete(key);
  recent.set(key, now);
  for (const [oldest, at] of recent) {
    if (now - at < ONE_ALARM_MS && recent.size <= MAX_REMEMBERED) return;
    recent.delete(oldest);
  }
}

/**
 * The alarms that one server has to tell. Pure: the shell `alarms.ts` has the clock, the queue and the webhook.
 *
 * INVARIANTS
 * 1. Nothing is lost silently. An alarm that is not told repeats a recent one, or is reported as dropped.
 * 2. A key is not told twice within ONE_ALARM_MS.
 * 3. A trouble is told once, if it is not over `lastingMs` after its beginning.
 */
export interface AlarmState {
  readonly lastingMs: number;
  /** Troubles that are not told yet, by their keys. */
  readonly troubles: Map<string, { readonly content: AlarmContent; readonly dueAt: number }>;
  readonly told: Recent;
}

export function createAlarmState(lastingMs: number): AlarmState {
  return { lastingMs, troubles: new Map(), told: new Map() };
}

/** Takes note of a change, and answers what to tell now. */
export function noticed(
  state: AlarmState,
  change: AlarmChange,
  now: number,
): readonly AlarmContent[] {
  if (change.type === "alarm") return [change.content];
  const { troubles, lastingMs } = state;
  if (change.type === "over") troubles.delete(change.key);
  else if (!troubles.has(change.content.key)) {
    troubles.set(change.content.key, { content: change.content, dueAt: now + lastingMs });
  }
  return [];
}

/** The troubles that have lasted long enough. Each is answered once. */
export function lasted(state: AlarmState, now: number): readonly AlarmContent[] {
  const ripe = [...state.troubles.values()].filter(({ dueAt }) => dueAt <= now);
  for (const { content } of ripe) state.troubles.delete(content.key);
  return ripe.map(({ content }) => content);
}

/** When `lasted` next has something to tell; undefined when no trouble is open. */
export function nextDueAt(state: AlarmState): number | undefined {
  const [first] = [...state.troubles.values()].map(({ dueAt }) => dueAt).toSorted((a, b) => a - b);
  return first;
}

/** Whether to tell an alarm. `waiting` is how many alarms wait in memory already. */
export function raised(
  state: AlarmState,
  { key }: AlarmContent,
  waiting: number,
  now: number,
): "dropped" | "repeated" | "told" {
  if (isRecent(state.told, key, now)) return "repeated";
  if (waiting >= MAX_WAITING) return "dropped";
  remember(state.told, key, now);
  return "told";
}

/** Whether an alarm is too old to be tried once more. Both times are of the wall clock. */
export function isStale(raisedAtMs: number, nowMs: number): boolean {
  return nowMs - raisedAtMs > MAX_AGE_MS;
}

/** How long to wait after this many failures in a row, with jitter, in milliseconds. */
export function retryMs(failures: number, random: () => number): number {
  const whole = Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** Math.min(failures - 1, 10));
  return whole * (0.5 + random() / 2);
}
