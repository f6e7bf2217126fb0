import type { AuditEvent } from "@idmint/core/server";

/**
 * Which refusals get a row of the audit trail, and how many were left out. Pure.
 *
 * INVARIANTS
 * 1. However many refusals there are, and however many callers make them, no more than ROWS_A_MINUTE of them become rows in
 *    a minute, and no more than MAX_WAITING wait. So nobody fills the store or the memory by being refused.
 * 2. Every refusal has a row or is counted in one: in one of its caller, or, with more than MAX_CALLERS of them, in one of all
 *    others. Nothing is lost but by a crash, or while more rows than MAX_WAITING wait for the store, and then it is counted.
 */
export interface RefusalsState {
  /** When the present minute began, on the clock. */
  minuteAt: number;
  /** Rows of this minute. */
  rows: number;
  readonly callers: Map<string, Seen>;
  /** Of callers that are too many to be told apart. */
  others: Seen | undefined;
  waiting: AuditEvent[];
}

/** A caller's refusals of this minute. */
interface Seen {
  rows: number;
  omitted: number;
  /** The last one that got no row. */
  last: AuditEvent;
}

const MINUTE_MS = 60_000;
/** Rows that one caller gets in a minute. */
export const CALLER_ROWS = 10;
/** Rows of all callers in a minute; those that count what was left out come on top, one for each caller. */
export const ROWS_A_MINUTE = 100;
export const MAX_CALLERS = 100;
export const MAX_WAITING = 1_000;

export function createRefusalsState(now: number): RefusalsState {
  return { minuteAt: now, rows: 0, callers: new Map(), others: undefined, waiting: [] };
}

/** A call was refused. `caller`: all of whose calls are of one. */
export function sawRefusal(
  state: RefusalsState,
  caller: string,
  event: AuditEvent,
  now: number,
): void {
  minuteOver(state, now);
  const isTold = state.callers.has(caller) || state.callers.size < MAX_CALLERS;
  const seen = isTold ? callerOf(state, caller, event) : othersOf(state, event);
  const isFull = state.rows >= ROWS_A_MINUTE || state.waiting.length >= MAX_WAITING;
  if (isTold && seen.rows < CALLER_ROWS && !isFull) {
    seen.rows++;
    state.rows++;
    state.waiting.push(event);
    return;
  }
  seen.omitted++;
  if (isTold) seen.last = event;
}

function callerOf({ callers }: RefusalsState, caller: string, event: AuditEvent): Seen {
  const seen = callers.get(caller) ?? { rows: 0, omitted: 0, last: event };
  callers.set(caller, seen);
  return seen;
}

function othersOf(state: RefusalsState, event: AuditEvent): Seen {
  const nobody = { principal: "", proof: "", peer: "several callers", resource: "" };
  state.others ??= { rows: 0, omitted: 0, last: { ...event, ...nobody } };
  return state.others;
}

/** Whether a refusal waits for its row, or may be counted in one when the minute is over. */
export function hasUntold({ waiting, callers }: RefusalsState): boolean {
  return waiting.length > 0 || callers.size > 0;
}

/** The next rows to be written, `most` of them. */
export function takeWaiting(state: RefusalsState, most: number): readonly AuditEvent[] {
  return state.waiting.splice(0, most);
}

/** They could not be written, and are tried again. */
export function putBack(state: RefusalsState, events: readonly AuditEvent[]): void {
  state.waiting.unshift(...events);
  cut(state);
}

/** When a minute is over, what was left out in it is told, a row for each caller. */
export function minuteOver(state: RefusalsState, now: number): void {
  if (now - state.minuteAt < MINUTE_MS) return;
  state.minuteAt = now;
  state.rows = 0;
  const all = [...state.callers.values(), ...(state.others === undefined ? [] : [state.others])];
  state.callers.clear();
  state.others = undefined;
  for (const { omitted, last } of all) {
    if (omitted > 0) state.waiting.push({ ...last, omitted });
  }
  cut(state);
}

/** The oldest of too many become one. */
function cut({ waiting }: RefusalsState): void {
  const tooMany = waiting.length - MAX_WAITING;
  if (tooMany <= 0) return;
  const oldest = waiting.splice(0, tooMany + 1);
  const last = oldest.at(-1);
  if (last === undefined) return;
  const omitted = oldest.reduce((sum, event) => sum + countOf(event), 0);
  waiting.unshift({ ...last, omitted });
}

/** How many refusals a row stands for. */
export function countOf({ omitted }: AuditEvent): number {
  return Math.max(1, omitted);
}
