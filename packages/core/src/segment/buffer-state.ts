import { tooManyWaiters } from "../call.ts";
import { busyMs, type IdmintError, type Reason, segmentNotReady } from "../errors.ts";
import type { Random } from "../ports.ts";
import { backoffAfter } from "./backoff.ts";
import type { BufferState, Effect, Load, Waiter } from "./buffer-types.ts";
import { strideAfter } from "./burst.ts";
import {
  dropLoads,
  endGeneration,
  enterFirstLoad,
  hasNext,
  issuedTotal,
  prefetchMark,
  readyCount,
  setLimits,
  take,
} from "./cursor.ts";
import { createRateMeter, observeRate, peakRate, WINDOW_MS } from "./rate.ts";
import { countOf, lastOf, type Segment } from "./segment.ts";
import { nextSize } from "./sizing.ts";

// The transitions: each function is one event, and answers the effects that the shell has to run.

/**
 * Refusals of a load that concern the ids in memory too: the tag may not issue any, or nobody may, the store went back, or the answers
 * of the servers are not to be believed. The others (the tag's end, overload, a missing permission) say nothing about ids that were granted before.
 */
const VOIDS_WHAT_IS_HELD: ReadonlySet<Reason> = new Set([
  "ISSUING_STOPPED",
  "SEGMENT_INVALID",
  "STORE_EPOCH_CHANGED",
  "TAG_NOT_FOUND",
  "TAG_PAUSED",
  "WRONG_KIND",
]);

/** Most ids from one look at the clock to the next. */
const MAX_STRIDE = 1_024;
const NOTHING: readonly Effect[] = [];

/** Ids are put back while fewer loads than this are held, those that were put back among them; more are waste. */
const MAX_PUT_BACK_LOADS = 64;

/** Invariant 6: every look at the clock comes here or to `lookAside`, before any id is issued. In a burst the next ids need none. */
export function look<R>(state: BufferState<R>, now: number): readonly Effect[] {
  state.stride = strideAfter(state.stride, now - state.lookedAt, MAX_STRIDE);
  return dropExpired(state, now);
}

/** By this look no further id is issued. */
export function lookAside<R>(state: BufferState<R>, now: number): readonly Effect[] {
  state.stride = Math.min(state.stride, 1);
  return dropExpired(state, now);
}

function dropExpired<R>(state: BufferState<R>, now: number): readonly Effect[] {
  state.lookedAt = now;
  state.lookedFrom = issuedTotal(state);
  if (!state.loads.some((load) => load.expiresAt <= now)) {
    setLimits(state);
    return NOTHING;
  }
  const effects: Effect[] = [];
  dropLoads(state, (load) => load.expiresAt <= now, "expired", effects);
  return effects;
}

/** What follows every issue: the next load starts once the prefetch share of the current one is used. */
export function afterIssue<R>(state: BufferState<R>, now: number): Effect[] {
  const effects: Effect[] = [];
  startLoadIfDue(state, now, effects);
  setLimits(state);
  return effects;
}

/**
 * A call for `waiter.count` ids: served at once from what is held, or it waits for the load in flight, or it is refused
 * at once.
 */
export function request<R>(state: BufferState<R>, waiter: Waiter, now: number): Effect[] {
  if (state.fenced !== undefined)
    return [{ type: "refuse", waiter: waiter.id, error: state.fenced }];
  const segments = take(state, waiter.count) ?? takeLastIds(state, waiter, now);
  if (segments === undefined) return wait(state, waiter, now);
  return [{ type: "serve", waiter: waiter.id, segments }, ...afterIssue(state, now)];
}

/** At the tag's end, what is left, for those who can use fewer ids than they asked for. */
function takeLastIds<R>(
  state: BufferState<R>,
  waiter: Waiter,
  now: number,
): readonly Segment[] | undefined {
  const { loading } = state;
  const isAtEnd =
    loading.phase === "backoff" &&
    now < loading.retryAt &&
    loading.error.reason === "TAG_EXHAUSTED";
  const left = readyCount(state);
  return waiter.allowFewer && isAtEnd && left > 0 ? take(state, left) : undefined;
}

function wait<R>(state: BufferState<R>, waiter: Waiter, now: number): Effect[] {
  const effects: Effect[] = [];
  const { loading } = state;
  if (state.waiters.length >= state.options.maxWaiters) {
    const error = tooManyWaiters(state.tag, state.options.maxWaiters);
    return [{ type: "refuse", waiter: waiter.id, error }];
  }
  if (loading.phase === "backoff" && now < loading.retryAt) {
    if (loading.final || (loading.gaveUp && waiter.isImpatient))
      return [{ type: "refuse", waiter: waiter.id, error: loading.error }];
    if (loading.retryAt >= waiter.answerBy) {
      const error = notBefore(state, loading.retryAt - now, loading.error);
      return [{ type: "refuse", waiter: waiter.id, error }];
    }
  }
  state.waiters.push(waiter);
  startLoadIfDue(state, now, effects);
  setLimits(state);
  if (state.loading.phase === "backoff")
    effects.push({ type: "retry-at", at: state.loading.retryAt });
  return effects;
}

/** The load with this token came. */
export function loadArrived<R>(
  state: BufferState<R>,
  token: number,
  load: Load<R>,
  now: number,
): Effect[] {
  const count = countOf(load.segments);
  // Invariant 2: only the load that is in flight is accepted, and only once.
  if (state.loading.phase !== "loading" || state.loading.token !== token) {
    return [{ type: "wasted", count, cause: "rejected" }];
  }
  const { startedAt, failures } = state.loading;
  const { segments, receipt, expiresAt = Infinity } = load;
  const effects: Effect[] = [...lookAside(state, now)];
  state.loading = { phase: "idle" };
  if (load.epoch > state.epoch) raiseEpoch(state, load.epoch, effects);
  // Invariants 3, 4 and 6. The answer of a server that has not heard of the newer epoch yet is a failed load.
  const isUsable = count > 0 && load.epoch === state.epoch;
  const isExpired = now >= expiresAt;
  if (!isUsable || isExpired || (state.options.ordered && !isAbove(load.segments, state.highest))) {
    effects.push({ type: "wasted", count, cause: "rejected" });
    loadFailedWith(state, failures, segmentNotReady(state.tag, 0), now, () => 0, effects);
    return effects;
  }
  const held = { segments, count, grant: { receipt }, arrivedAt: now, expiresAt };
  // Not by spreading, which leaves room for sixteen more.
  state.loads = state.loads.concat([held]);
  for (const segment of segments) {
    const last = lastOf(segment);
    if (last > state.highest) state.highest = last;
  }
  if (state.loads.length === 1) enterFirstLoad(state);
  effects.push({ type: "loaded", count, durationMs: now - startedAt });
  serveWaiters(state, effects);
  startLoadIfDue(state, now, effects);
  setLimits(state);
  return effects;
}

/** The load with this token failed; what it may have allocated is never used. */
export function loadFailed<R>(
  state: BufferState<R>,
  token: number,
  error: IdmintError,
  now: number,
  random: Random,
  gaveUp: boolean,
): Effect[] {
  if (state.loading.phase !== "loading" || state.loading.token !== token) return [];
  const effects: Effect[] = [...lookAside(state, now)];
  loadFailedWith(state, state.loading.failures, error, now, random, effects, gaveUp);
  return effects;
}

/** The time of a retry came, or the store is known to be back. */
export function retryDue<R>(state: BufferState<R>, now: number): Effect[] {
  const { loading } = state;
  if (loading.phase !== "backoff") return [];
  const effects: Effect[] = [];
  state.loading = { ...loading, retryAt: Math.min(loading.retryAt, now) };
  startLoadIfDue(state, now, effects);
  setLimits(state);
  return effects;
}

/** Some answer told the tag's epoch: what is held of lower ones is dropped, and refusals of the old one end. */
export function observeEpoch<R>(state: BufferState<R>, epoch: bigint, now: number): Effect[] {
  if (epoch <= state.epoch) return [];
  const effects: Effect[] = [];
  raiseEpoch(state, epoch, effects);
  startLoadIfDue(state, now, effects);
  setLimits(state);
  return effects;
}

/** Drops everything, the load in flight too, and refuses with `error` until `unfence`. */
export function fence<R>(state: BufferState<R>, error: IdmintError): Effect[] {
  const effects: Effect[] = [];
  state.fenced = error;
  state.loading = { phase: "idle" };
  endGeneration(state, "dropped", effects);
  for (const waiter of state.waiters.splice(0))
    effects.push({ type: "refuse", waiter: waiter.id, error });
  return effects;
}

/** The age of what is held, and of what is on its way, cannot be told any more: none of it is issued. */
export function expireAll<R>(state: BufferState<R>, now: number): Effect[] {
  const effects: Effect[] = [];
  if (state.loading.phase === "loading") state.loading = { phase: "idle" };
  endGeneration(state, "expired", effects);
  startLoadIfDue(state, now, effects);
  setLimits(state);
  return effects;
}

export function unfence<R>(state: BufferState<R>): void {
  state.fenced = undefined;
}

/**
 * Ids of a `take` that were never issued and never will be: a suffix of what was taken. Answers how many were accepted.
 * Never with `ordered`, where they would come after higher ones, and never of another generation than the buffer's
 * (invariant 7): what was granted before the store went back may have been granted again, even within an epoch.
 */
export function putBack<R>(
  state: BufferState<R>,
  segments: readonly Segment[],
  generation: symbol,
  now: number,
): number {
  if (state.fenced !== undefined || state.options.ordered) return 0;
  if (generation !== state.generation) return 0;
  if (state.loads.length >= MAX_PUT_BACK_LOADS) return 0;
  const count = countOf(segments);
  const held = { segments, count, grant: undefined, arrivedAt: now, expiresAt: Infinity };
  // Behind the current load and before the next one, so that the next one's end stays the floor's neighbour.
  if (state.loads.length === 0) {
    state.loads = [held];
    enterFirstLoad(state);
  } else {
    state.loads = state.loads.toSpliced(1, 0, held);
  }
  setLimits(state);
  return count;
}

/** About once a second: takes note of the rate. */
export function sampleRate<R>(state: BufferState<R>, now: number): void {
  const { min, holdForMs } = state.options;
  const total = issuedTotal(state);
  // As long as all ids issued ever would, within one window, make no load larger than min, there is nothing to measure.
  if (state.rate === undefined && total * holdForMs <= min * WINDOW_MS) return;
  state.rate ??= createRateMeter(now, 0, holdForMs);
  observeRate(state.rate, now, total);
}

function presentPeak<R>(state: BufferState<R>, now: number): number {
  const total = issuedTotal(state);
  return state.rate === undefined ? total / WINDOW_MS : peakRate(state.rate, now, total);
}

/** About once a second: drops what is older than max_age, and renews it in time for those who cannot wait. */
export function expire<R>(state: BufferState<R>, now: number): Effect[] {
  const effects: Effect[] = [...lookAside(state, now)];
  startLoadIfDue(state, now, effects);
  setLimits(state);
  return effects;
}

function isAbove(segments: readonly Segment[], bound: bigint): boolean {
  let last = bound;
  for (const segment of segments) {
    if (segment.base <= last) return false;
    last = lastOf(segment);
  }
  return true;
}

function raiseEpoch<R>(state: BufferState<R>, epoch: bigint, effects: Effect[]): void {
  state.epoch = epoch;
  endGeneration(state, "dropped", effects);
  // A refusal of the old epoch (paused, exhausted) says nothing about the new one.
  if (state.loading.phase === "backoff") state.loading = { phase: "idle" };
}

/** In the order of arrival, all or nothing each, as far as the ids go. */
function serveWaiters<R>(state: BufferState<R>, effects: Effect[]): void {
  let served = 0;
  for (const waiter of state.waiters) {
    const segments = take(state, waiter.count);
    if (segments === undefined) break;
    effects.push({ type: "serve", waiter: waiter.id, segments });
    served++;
  }
  // An array that once was long keeps its room, and a server has many of these.
  state.waiters = state.waiters.slice(served);
}

function loadFailedWith<R>(
  state: BufferState<R>,
  earlierFailures: number,
  error: IdmintError,
  now: number,
  random: Random,
  effects: Effect[],
  gaveUp = false,
): void {
  const failures = earlierFailures + 1;
  const retryInMs = backoffAfter(error, failures, random);
  const retryAt = now + retryInMs;
  const final = !error.retryable && busyMs(error) === undefined;
  state.loading = { phase: "backoff", failures, retryAt, error, final, gaveUp };
  effects.push({ type: "load-failed", error, retryInMs });
  if (VOIDS_WHAT_IS_HELD.has(error.reason)) endGeneration(state, "dropped", effects);
  if (final) refuseOrServeRest(state, error, effects);
  else refuseHopeless(state, retryAt, now, state.loading, effects);
  if (state.waiters.length > 0) effects.push({ type: "retry-at", at: retryAt });
  setLimits(state);
}

/** No further load will come: whoever can live with what is left gets it, in order, the others get the error. */
function refuseOrServeRest<R>(state: BufferState<R>, error: IdmintError, effects: Effect[]): void {
  for (const waiter of state.waiters.splice(0)) {
    const ready = readyCount(state);
    const count = waiter.allowFewer ? Math.min(waiter.count, ready) : waiter.count;
    const segments = count > 0 ? take(state, count) : undefined;
    effects.push(
      segments === undefined
        ? { type: "refuse", waiter: waiter.id, error }
        : { type: "serve", waiter: waiter.id, segments },
    );
  }
}

/** Invariant 5: nothing is under way that could answer these in time. */
function refuseHopeless<R>(
  state: BufferState<R>,
  retryAt: number,
  now: number,
  { error, gaveUp }: { readonly error: IdmintError; readonly gaveUp: boolean },
  effects: Effect[],
): void {
  for (const waiter of state.waiters.splice(0)) {
    const isRefused = gaveUp && waiter.isImpatient;
    if (!isRefused && waiter.answerBy > retryAt) {
      state.waiters.push(waiter);
      continue;
    }
    const refusal = isRefused ? error : notBefore(state, retryAt - now, error);
    effects.push({ type: "refuse", waiter: waiter.id, error: refusal });
  }
}

/** The refusal of a call whose time is over before the next load. Whoever meets a busy server hears so. */
function notBefore<R>(state: BufferState<R>, retryInMs: number, error: IdmintError): IdmintError {
  return busyMs(error) === undefined ? segmentNotReady(state.tag, retryInMs, error) : error;
}

/** Invariant 2: the only place where a load starts, and only from a phase in which none is in flight. */
function startLoadIfDue<R>(state: BufferState<R>, now: number, effects: Effect[]): void {
  const { loading } = state;
  if (loading.phase === "loading" || state.fenced !== undefined) return;
  if (loading.phase === "backoff" && now < loading.retryAt) return;
  if (!isLoadDue(state, now)) return;
  const { options } = state;
  state.size = nextSize(state.size, presentPeak(state, now), options);
  const demand = state.waiters.reduce((sum, waiter) => sum + waiter.count, 0);
  // The waiters together may fill a load up to max; one call that asks for more than max takes what it asks for.
  const count = Math.max(
    Math.min(options.max, Math.max(state.size, demand)),
    state.waiters[0]?.count ?? 0,
  );
  const token = state.nextToken++;
  const failures = loading.phase === "backoff" ? loading.failures : 0;
  const error = loading.phase === "backoff" ? loading.error : undefined;
  state.loading = { phase: "loading", token, startedAt: now, failures, error };
  effects.push({
    type: "load",
    token,
    request: { count, minCount: 1, after: options.ordered ? state.highest : 0n },
  });
}

function isLoadDue<R>(state: BufferState<R>, now: number): boolean {
  if (state.waiters.length > 0) return true;
  const first = state.loads[0];
  if (first === undefined) return state.keepReady;
  if (hasNext(state)) return false;
  if (state.usedBefore + state.offset >= prefetchMark(state)) return true;
  // Renewed at nine tenths of its age, so that a synchronous caller never finds it expired.
  return state.keepReady && now >= first.expiresAt - (first.expiresAt - first.arrivedAt) / 10;
}
