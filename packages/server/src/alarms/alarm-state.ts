import type { Matter } from "./alarm.ts";
import type { Sign } from "./alarm-of.ts";

/** Alarms with the same key within this time are one, in milliseconds. */
const ONE_ALARM_MS = 60_000;
/** Keys that are remembered; with more the oldest are told once more. */
const MAX_REMEMBERED = 10_000;
/** Alarms that wait in memory to be told; more are dropped, each with a line in the log. */
const MAX_WAITING = 1_000;
/** An alarm that could not be delivered for so long is dropped, with a line in the log: it is news no more. */
const MAX_AGE_MS = 86_400_000;
const MIN_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

/** Keys of alarms, and when each was last told. In the order of that. */
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
 * What one server has to tell. Pure: the shell `alarms.ts` has the clock, the queue and the webhook.
 *
 * INVARIANTS
 * 1. Nothing is lost without a word: what is not told is a repetition, or it is told of as dropped.
 * 2. A key is not told twice within ONE_ALARM_MS.
 * 3. A trouble is told once, when it is not over `lastingMs` after its beginning.
 */
export interface AlarmState {
  readonly lastingMs: number;
  /** Troubles that are not told yet, by their keys. */
  readonly troubles: Map<string, { readonly matter: Matter; readonly dueAt: number }>;
  readonly told: Recent;
}

export function createAlarmState(lastingMs: number): AlarmState {
  return { lastingMs, troubles: new Map(), told: new Map() };
}

/** Something happened. */
export function noticed(state: AlarmState, sign: Sign, now: number): readonly Matter[] {
  if (sign.type === "alarm") return [sign.matter];
  const { troubles, lastingMs } = state;
  if (sign.type === "over") troubles.delete(sign.key);
  else if (!troubles.has(sign.matter.key)) {
    troubles.set(sign.matter.key, { matter: sign.matter, dueAt: now + lastingMs });
  }
  return [];
}

/** Troubles that have lasted for long enough, each answered once. */
export function lasted(state: AlarmState, now: number): readonly Matter[] {
  const ripe = [...state.troubles.values()].filter(({ dueAt }) => dueAt <= now);
  for (const { matter } of ripe) state.troubles.delete(matter.key);
  return ripe.map(({ matter }) => matter);
}

/** When `lasted` has something to say next; undefined: not as things are. */
export function nextDueAt(state: AlarmState): number | undefined {
  const [first] = [...state.troubles.values()].map(({ dueAt }) => dueAt).toSorted((a, b) => a - b);
  return first;
}

/** Whether something is told; `waiting` is what is in memory already. */
export function raised(
  state: AlarmState,
  { key }: Matter,
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

/** How long to wait after so many failures in a row, with jitter, in milliseconds. */
export function retryMs(failures: number, random: () => number): number {
  const whole = Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** Math.min(failures - 1, 10));
  return whole * (0.5 + random() / 2);
}
