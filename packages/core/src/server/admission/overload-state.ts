/** When a server is overloaded, and what it takes meanwhile. */
export interface OverloadOptions {
  /** Calls that wait longer than this, turn after turn, are too old. */
  readonly ageMs: number;
  /**
   * Fewer calls at once are never too many, however slow the machine is at the moment. Connections take turns, so not every
   * turn has all of them.
   */
  readonly calls: number;
  /** For how long that lasts before anything is refused. The loop is idle for IDLE_SHARE of it at most. */
  readonly lastsMs: number;
  /** Time for calls in one turn of an overloaded server. It bounds how old a call gets that is admitted. */
  readonly turnMs: number;
  /**
   * An overload is over when half of the age and of the calls was not reached for so long. It does not begin when no turn was
   * too long for so long.
   */
  readonly calmMs: number;
}

/** What one caller may still do in an overload. */
interface Share {
  credit: number;
  /** When `credit` was right. */
  at: number;
  /** Since the last look. */
  isActive: boolean;
  isRefused: boolean;
}

/** A turn of the event loop in which calls came. */
export interface Turn {
  readonly endedAt: number;
  /** How long the loop worked for it. */
  readonly busyMs: number;
  /** How long it had nothing to do before it. */
  readonly idleMs: number;
  /** Refusals of overload that are not answered yet. Their callers are there, and would call again. */
  readonly held: number;
}

/**
 * Whether a server has more to do than it can, and which calls it takes then. Pure.
 *
 * Calls wait in the sockets while the event loop works, so the age of what waits is the length of a turn, or what it would
 * have been had nothing been refused. A server is overloaded when that age stays too high, as CoDel has it: not when there
 * is a burst, but when the queue stands.
 *
 * INVARIANTS
 * 1. Half of the time is shared out evenly among the callers, and who asks for no more than its share is not refused,
 *    however long turns are.
 * 2. Half of a turn is for who comes first, so one caller alone gets all. So a turn takes no longer than half of the one
 *    before, and half of `turnMs`, and what refusals take: it settles at about `turnMs`, and so does the wait of calls that
 *    are admitted. After a time with nothing to do there is more, a few turns' worth at most.
 * 3. Whether it is over is judged by the calls that came and not by those that were admitted: refusing them must not look
 *    like an end.
 */
export interface OverloadState {
  readonly options: OverloadOptions;
  /** Since when; undefined: not overloaded. */
  since: number | undefined;
  turn: number;
  /** When the last turn ended, and how long the loop worked for it. */
  endedAt: number;
  tookMs: number;
  /** In the present turn. */
  admitted: number;
  refused: number;
  /** What the loop takes for a call, on average. */
  costMs: number;
  perTurn: number;
  open: number;
  /**
   * Since when turns were too long, until when, how many of them had too many calls, when the last of those ended, and the
   * time without work between them. Short ones lie between them: the calls of a connection that was not served in a long turn
   * come in the next.
   */
  longSince: number | undefined;
  longUntil: number;
  fullTurns: number;
  fullAt: number;
  longIdleMs: number;
  shortSince: number | undefined;
  /** While it is overloaded. */
  readonly callers: Map<string, Share>;
  /** At the last look: whether most callers were refused something. */
  isWide: boolean;
  turnAtLook: number;
}

/** Callers that are told apart. Further ones count as one. */
const MAX_CALLERS = 10_000;
const OTHERS = "";
/** Turns whose calls a server may save up while it has nothing to do. */
const SAVED_TURNS = 4;
/** For so long a caller may save up its share. */
const SAVED_MS = 500;
const COST_WEIGHT = 0.1;
/** What a call takes until it is known. */
const USUAL_COST_MS = 0.05;
/** In turns of fewer calls, much of the time goes into other things. */
const MIN_LEARNT = 16;
/** A process that was stopped in a turn must not take its calls for expensive. */
const MAX_COST_RISE = 4;
/** One turn may be long for any reason, such as a stop of the process. */
const MIN_FULL_TURNS = 2;
/** Before an overload begins, the loop is idle for this share of the time at most. */
const IDLE_SHARE = 0.2;
/** Of the calls of an overload, those that each turn has at least. */
const SHARE_OF_TURN = 0.25;

export function createOverloadState(options: OverloadOptions): OverloadState {
  return {
    options,
    since: undefined,
    turn: 0,
    endedAt: 0,
    tookMs: 0,
    admitted: 0,
    refused: 0,
    costMs: USUAL_COST_MS,
    perTurn: 1,
    open: 0,
    longSince: undefined,
    longUntil: 0,
    fullTurns: 0,
    fullAt: 0,
    longIdleMs: 0,
    shortSince: undefined,
    callers: new Map(),
    isWide: false,
    turnAtLook: 0,
  };
}

/** A call has come to an overloaded server: whether it is admitted. */
export function admits(state: OverloadState, caller: string): boolean {
  const share = shareOf(state, caller);
  share.isActive = true;
  if (share.credit >= 1) share.credit--;
  else if (state.open >= 1) state.open--;
  else {
    share.isRefused = true;
    state.refused++;
    return false;
  }
  state.admitted++;
  return true;
}

/** A turn is over. Answers whether an overload began or ended with it. */
export function turnEnded(state: OverloadState, turn: Turn): "began" | "ended" | undefined {
  const { admitted, refused, options } = state;
  const calls = admitted + refused;
  if (calls >= MIN_LEARNT) learnCost(state, turn.busyMs / calls);
  // Invariant 3.
  const waiting = calls + turn.held;
  const ageMs = turn.busyMs + (refused + turn.held) * state.costMs;
  state.turn++;
  state.endedAt = turn.endedAt;
  state.tookMs = turn.busyMs;
  state.admitted = 0;
  state.refused = 0;
  state.perTurn = Math.max(1, options.turnMs / state.costMs);
  const half = state.perTurn / 2;
  const spare = Math.min(SAVED_TURNS * state.perTurn, turn.idleMs / state.costMs);
  state.open = Math.max(Math.min(Math.max(1, half), state.open + half), spare);
  return state.since === undefined
    ? mayBegin(state, turn, ageMs >= options.ageMs ? waiting : 0)
    : mayEnd(state, turn, ageMs < options.ageMs / 2 || waiting < options.calls / 2);
}

/** To be called about once a second. Answers whether an overload ended because no calls come any more. */
export function lookAtCallers(state: OverloadState, held: number): "ended" | undefined {
  let active = 0;
  let refused = 0;
  for (const [caller, share] of state.callers) {
    if (share.isActive) active++;
    else state.callers.delete(caller);
    if (share.isRefused) refused++;
    share.isActive = false;
    share.isRefused = false;
  }
  state.isWide = refused * 2 > active;
  const isQuiet = state.turn === state.turnAtLook;
  state.turnAtLook = state.turn;
  if (state.since === undefined || !isQuiet || held > 0) return undefined;
  end(state);
  return "ended";
}

/** `waiting`: calls of a turn that was too long. */
function mayBegin(state: OverloadState, turn: Turn, waiting: number): "began" | undefined {
  const { calls, lastsMs, calmMs } = state.options;
  const { endedAt, busyMs, idleMs } = turn;
  if (endedAt - busyMs - state.longUntil >= calmMs) forgetLong(state);
  if (state.longSince !== undefined) state.longIdleMs += idleMs;
  if (waiting < calls * SHARE_OF_TURN) return undefined;
  state.longSince ??= endedAt - busyMs;
  state.longUntil = endedAt;
  if (waiting >= calls) {
    state.fullTurns++;
    state.fullAt = endedAt;
  }
  const lastedMs = endedAt - state.longSince;
  const isFull = state.fullTurns >= MIN_FULL_TURNS && endedAt - state.fullAt < calmMs;
  if (!isFull || lastedMs < lastsMs) return undefined;
  if (state.longIdleMs > lastedMs * IDLE_SHARE) {
    forgetLong(state);
    return undefined;
  }
  state.since = endedAt;
  state.shortSince = undefined;
  return "began";
}

function mayEnd(state: OverloadState, { endedAt }: Turn, isShort: boolean): "ended" | undefined {
  if (!isShort) {
    state.shortSince = undefined;
    return undefined;
  }
  state.shortSince ??= endedAt;
  if (endedAt - state.shortSince < state.options.calmMs) return undefined;
  end(state);
  return "ended";
}

function end(state: OverloadState): void {
  state.since = undefined;
  forgetLong(state);
  state.callers.clear();
  state.isWide = false;
}

function forgetLong(state: OverloadState): void {
  state.longSince = undefined;
  state.fullTurns = 0;
  state.longIdleMs = 0;
}

function learnCost(state: OverloadState, sampleMs: number): void {
  const bounded = Math.min(sampleMs, state.costMs * MAX_COST_RISE);
  state.costMs += COST_WEIGHT * (bounded - state.costMs);
}

/** Invariant 1: the share of a caller, with what it was given since its last call. */
function shareOf(state: OverloadState, caller: string): Share {
  const { callers, endedAt, tookMs, costMs } = state;
  const known = callers.get(caller);
  const name = known !== undefined || callers.size < MAX_CALLERS ? caller : OTHERS;
  let share = known ?? callers.get(name);
  if (share === undefined) {
    // Its calls came while the last turn took its time.
    share = { credit: 1, at: endedAt - tookMs, isActive: true, isRefused: false };
    callers.set(name, share);
  }
  const perMs = 0.5 / costMs / callers.size;
  const most = Math.max(1, SAVED_MS * perMs);
  share.credit = Math.min(most, share.credit + (endedAt - share.at) * perMs);
  share.at = endedAt;
  return share;
}
