import { ANSWER_MARGIN_MS, tooManyWaiters } from "../call.ts";
import { IdmintError } from "../errors.ts";
import type { WasteCause } from "../events.ts";
import type { Period } from "./period.ts";

/**
 * Calls for strictly increasing ids of one tag: those that come while a round trip to the store is in flight form the
 * next one. Pure: `group-commit.ts` is the shell that has the promises, the timers and the round trips.
 *
 * INVARIANTS
 * 1. An id asked for after another one was answered is larger. For a call's ids come out of a round trip that was begun
 *    after the call was asked (a batch is closed before its round trip begins, and nobody joins it later), so they were
 *    granted after everything that had been answered by then; and grants of a tag rise, over all servers.
 * 2. At most one round trip is waited for. Its answer is used only with the token it was begun with, and once.
 * 3. Each id of an answer goes to at most one call. Ids of calls that ended meanwhile are a gap.
 * 4. At most `maxWaiters` calls are unanswered.
 * 5. No id of an epoch below `epoch` is answered.
 * 6. A batch is tried anew only after the epoch rose while its round trip was in flight, or in halves: so each call costs a
 *    bounded number of round trips, whatever the store answers.
 */
export interface GroupCommitState {
  readonly tag: string;
  readonly options: GroupCommitOptions;
  /** Highest epoch seen. */
  epoch: bigint;
  /** Refuses everything with this error. */
  fenced: IdmintError | undefined;
  /** Calls that are in no batch, in the order they came. */
  waiting: Map<number, WaitingCall>;
  flight: Flight;
  /** Most calls of the next batch: fewer once a whole batch proved to be too many ids. */
  maxCalls: number;
  nextToken: number;
  nextCall: number;
}

export interface GroupCommitOptions {
  /** Most calls that may be unanswered. */
  readonly maxWaiters: number;
  /** Most ids of one round trip; no call may ask for more. */
  readonly maxCount: number;
}

interface WaitingCall {
  readonly id: number;
  readonly count: number;
}

/** idle: nothing to do. closing: a batch closes at the end of this turn. committing: its round trip is in flight. */
type Flight =
  | { readonly phase: "idle" }
  | { readonly phase: "closing" }
  | {
      readonly phase: "committing";
      readonly token: number;
      readonly calls: ReadonlyMap<number, WaitingCall>;
      /** Highest epoch seen when the round trip began. */
      readonly epoch: bigint;
      /** Calls that ended after the batch was closed. */
      readonly ended: Set<number>;
      /** Calls with a lower number were asked before this round trip began. */
      readonly before: number;
    };

/** Ids base … base + count − 1, durable before this answer. */
export interface Committed {
  readonly base: bigint;
  readonly count: number;
  readonly epoch: bigint;
  /** Undefined for tags without periods. */
  readonly period: Period | undefined;
}

/** `C`: what a round trip answers, which may say more than where its ids begin. */
export type GroupCommitEffect<C extends Committed = Committed> =
  | { readonly type: "close-after-turn" }
  | { readonly type: "commit"; readonly token: number; readonly count: number }
  | { readonly type: "answer"; readonly call: number; readonly ids: C }
  | { readonly type: "refuse"; readonly call: number; readonly error: IdmintError }
  | { readonly type: "wasted"; readonly count: number; readonly cause: WasteCause };

type Unanswering = readonly GroupCommitEffect<never>[];

export function createGroupCommitState(tag: string, options: GroupCommitOptions): GroupCommitState {
  return {
    tag,
    options,
    epoch: 0n,
    fenced: undefined,
    waiting: new Map(),
    flight: { phase: "idle" },
    maxCalls: Infinity,
    nextToken: 1,
    nextCall: 1,
  };
}

/** Someone asks for `count` ids; answers the call's number. It is refused at once, or answered or refused later. */
export function ask(
  state: GroupCommitState,
  count: number,
): { readonly call: number; readonly effects: Unanswering } {
  const { maxWaiters, maxCount } = state.options;
  if (count < 1 || count > maxCount) throw new RangeError(`${count} ids in one call`);
  const call = state.nextCall++;
  const error =
    state.fenced ??
    (unanswered(state) >= maxWaiters ? tooManyWaiters(state.tag, maxWaiters) : undefined);
  if (error !== undefined) return { call, effects: [{ type: "refuse", call, error }] };
  state.waiting.set(call, { id: call, count });
  return { call, effects: closeWhenIdle(state) };
}

/** The turn is over: what came in it is one batch, and its round trip begins. */
export function closeBatch(state: GroupCommitState): Unanswering {
  if (state.flight.phase !== "closing") return [];
  state.flight = { phase: "idle" };
  const calls = new Map<number, WaitingCall>();
  let count = 0;
  for (const call of state.waiting.values()) {
    if (calls.size >= state.maxCalls || count + call.count > state.options.maxCount) break;
    count += call.count;
    calls.set(call.id, call);
    state.waiting.delete(call.id);
  }
  if (calls.size === 0) return [];
  const token = state.nextToken++;
  const before = state.nextCall;
  const { epoch } = state;
  state.flight = { phase: "committing", token, calls, epoch, ended: new Set(), before };
  return [{ type: "commit", token, count }];
}

/** The round trip with this token granted ids: as many as its batch wanted. */
export function committed<C extends Committed>(
  state: GroupCommitState,
  token: number,
  ids: C,
): readonly GroupCommitEffect<C>[] {
  const { flight } = state;
  // Invariant 2.
  if (flight.phase !== "committing" || flight.token !== token) {
    return [{ type: "wasted", count: ids.count, cause: "rejected" }];
  }
  state.flight = { phase: "idle" };
  // Invariant 5: granted before the change of the tag that this server knows of already.
  if (ids.epoch < state.epoch) {
    const waste = { type: "wasted", count: ids.count, cause: "rejected" } as const;
    return [waste, ...overtaken(state, flight, ids.epoch), ...closeWhenIdle(state)];
  }
  state.epoch = ids.epoch;
  state.maxCalls = Infinity;
  return [...dealOut(flight, ids), ...closeWhenIdle(state)];
}

/** The round trip with this token failed; what it may have granted is used by nobody. */
export function commitFailed(
  state: GroupCommitState,
  token: number,
  error: IdmintError,
): Unanswering {
  const { flight } = state;
  if (flight.phase !== "committing" || flight.token !== token) return [];
  state.flight = { phase: "idle" };
  const refused = TOO_MANY.has(error.reason) ? tooMany(state, flight) : liveCalls(flight).map(idOf);
  const refusals = refused.map((call) => ({ type: "refuse" as const, call, error }));
  return [...refusals, ...closeWhenIdle(state)];
}

/** A call's time is over, or its caller went away. False when it was answered before. */
export function endCall(state: GroupCommitState, call: number): boolean {
  if (state.waiting.delete(call)) return true;
  const { flight } = state;
  if (flight.phase !== "committing") return false;
  if (!flight.calls.has(call) || flight.ended.has(call)) return false;
  flight.ended.add(call);
  return true;
}

/** Some answer told the tag's epoch: what comes under lower ones is not used. */
export function observeCommitEpoch(state: GroupCommitState, epoch: bigint): void {
  if (epoch > state.epoch) state.epoch = epoch;
}

/** Refuses all calls with `error`, and those to come until `unfence`. A round trip in flight will be waste. */
export function fenceCommits(state: GroupCommitState, error: IdmintError): Unanswering {
  const { flight } = state;
  const calls = flight.phase === "committing" ? liveCalls(flight) : [];
  const refused = [...calls.map(idOf), ...state.waiting.keys()];
  state.fenced = error;
  state.flight = { phase: "idle" };
  state.waiting.clear();
  return refused.map((call) => ({ type: "refuse", call, error }));
}

export function unfenceCommits(state: GroupCommitState): void {
  state.fenced = undefined;
}

/** Calls that have no answer yet. */
export function unanswered({ waiting, flight }: GroupCommitState): number {
  const inFlight = flight.phase === "committing" ? flight.calls.size - flight.ended.size : 0;
  return waiting.size + inFlight;
}

type Committing = Extract<Flight, { readonly phase: "committing" }>;

function closeWhenIdle(state: GroupCommitState): Unanswering {
  if (state.flight.phase !== "idle" || state.waiting.size === 0) return [];
  state.flight = { phase: "closing" };
  return [{ type: "close-after-turn" }];
}

/**
 * Invariant 6. A round trip that began before the change was overtaken by it: its calls wait on. One that began after it
 * should have seen it: the store contradicts what was seen of it, and to ask again at once would go on for ever.
 */
function overtaken(state: GroupCommitState, flight: Committing, epoch: bigint): Unanswering {
  if (epoch >= flight.epoch) {
    putBack(state, flight);
    return [];
  }
  const text = `tag "${state.tag}" was granted ids of epoch ${epoch}, after epoch ${flight.epoch} was seen`;
  const details = { metadata: { tag: state.tag }, retryAfterMs: ANSWER_MARGIN_MS };
  const error = new IdmintError("STORE_UNAVAILABLE", text, details);
  return liveCalls(flight).map(({ id: call }) => ({ type: "refuse", call, error }));
}

/** Invariant 3: the calls' ids one after the other, in the order in which the calls came. */
function dealOut<C extends Committed>(
  { calls, ended }: Committing,
  ids: C,
): readonly GroupCommitEffect<C>[] {
  const effects: GroupCommitEffect<C>[] = [];
  let { base } = ids;
  let abandoned = 0;
  for (const { id, count } of calls.values()) {
    if (ended.has(id)) abandoned += count;
    else effects.push({ type: "answer", call: id, ids: { ...ids, base, count } });
    base += BigInt(count);
  }
  if (abandoned > 0) effects.push({ type: "wasted", count: abandoned, cause: "abandoned" });
  return effects;
}

/** Refusals of a batch that a smaller one may not meet: fewer ids are left, or fewer may be asked for at once. */
const TOO_MANY: ReadonlySet<IdmintError["reason"]> = new Set(["INVALID_ARGUMENT", "TAG_EXHAUSTED"]);

/**
 * The batch wanted more ids than there are. A call that was alone is refused, with all that were asked before the round
 * trip began and want as many or more. With several calls nobody knows whose ids there are, so none is refused yet: half
 * as many are tried next, which ends with one alone.
 */
function tooMany(state: GroupCommitState, flight: Committing): readonly number[] {
  const [alone] = flight.calls.values();
  if (flight.calls.size > 1 || alone === undefined) {
    state.maxCalls = flight.calls.size >> 1;
    putBack(state, flight);
    return [];
  }
  state.maxCalls = Infinity;
  const others = [...state.waiting.values()].filter(
    ({ id, count }) => id < flight.before && count >= alone.count,
  );
  for (const { id } of others) state.waiting.delete(id);
  return [...liveCalls(flight), ...others].map(idOf);
}

/** The calls of a batch wait on, before all others. */
function putBack(state: GroupCommitState, flight: Committing): void {
  const calls = liveCalls(flight).map((call) => [call.id, call] as const);
  state.waiting = new Map([...calls, ...state.waiting]);
}

function liveCalls({ calls, ended }: Committing): readonly WaitingCall[] {
  return [...calls.values()].filter(({ id }) => !ended.has(id));
}

function idOf({ id }: WaitingCall): number {
  return id;
}
