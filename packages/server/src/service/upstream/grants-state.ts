import type { Granted, GrantRequest, Refused } from "@idmint/core/server";

/**
 * Which loads go into which call of `store.grant`. Pure: the shell `grants.ts` has the promises and the store.
 *
 * INVARIANTS
 * 1. No tag is in two calls at once. So between the moment a request takes the highest version seen and its answer, no
 *    other grant of this server raises the tag's version, and an answer that is not above it means that the store went
 *    back, even when it went back between two loads of one tag.
 * 2. At most `maxCalls` calls are in flight to each part of the store, with at most `maxBatch` tags each, all of that
 *    part: a part that does not answer takes no calls from the others.
 * 3. At most `maxQueued` requests wait; they are sent in the order they came, a tag's own in that order always.
 * 4. A call that waits for a lock has one tag, and at most `maxWaiting` of the calls to each part of the store do. All
 *    others skip rows that are locked, so a row that stays locked takes neither the batch it is in nor all connections.
 *    A tag that was skipped is sent alone, in its turn, and counts as in a call all the while. While none may wait, it
 *    goes along with the calls that skip: most locks are over in a moment.
 */
export interface GrantsState {
  readonly options: GrantsOptions;
  queued: Wanted[];
  /** Those whose row was locked, in the order in which that was found. */
  locked: Wanted[];
  readonly busy: Set<string>;
  readonly calls: Map<string, number>;
  /** How many of the calls wait for locks. */
  readonly waiting: Map<string, number>;
}

export interface GrantsOptions {
  readonly maxBatch: number;
  readonly maxCalls: number;
  readonly maxWaiting: number;
  readonly maxQueued: number;
  /** The part of the store that a tag is in; undefined: the store is one. */
  readonly groupOf: ((tag: string) => string) | undefined;
}

/** A load that waits to be sent. */
export interface Wanted {
  readonly id: number;
  readonly request: Omit<GrantRequest, "seenVersion">;
}

export function createGrantsState(options: GrantsOptions): GrantsState {
  const calls = new Map<string, number>();
  const waiting = new Map<string, number>();
  return { options, queued: [], locked: [], busy: new Set(), calls, waiting };
}

/** False when too many wait already. */
export function want(state: GrantsState, wanted: Wanted): boolean {
  if (state.queued.length >= state.options.maxQueued) return false;
  state.queued.push(wanted);
  return true;
}

/** Requests of one part of the store, sent in one call. */
export interface Call {
  readonly group: string;
  readonly batch: readonly Wanted[];
  /** Whether it skips rows that are locked. */
  readonly skipLocked: boolean;
}

/** The next call, which is in flight from now on; undefined when none may be sent. */
export function nextCall(state: GrantsState): Call | undefined {
  const { maxCalls, groupOf } = state.options;
  if (state.queued.length === 0 && state.locked.length === 0) return undefined;
  // A store that is one and busy: a long queue is not gone through for nothing at each turn.
  if (groupOf === undefined && countOf(state.calls, "") >= maxCalls) return undefined;
  const call = nextLocked(state) ?? nextQueued(state);
  if (call === undefined) return undefined;
  state.calls.set(call.group, countOf(state.calls, call.group) + 1);
  if (!call.skipLocked) state.waiting.set(call.group, countOf(state.waiting, call.group) + 1);
  return call;
}

/** The first tag of those that were skipped, alone. */
function nextLocked(state: GrantsState): Call | undefined {
  const { groupOf, maxCalls } = state.options;
  for (const [at, wanted] of state.locked.entries()) {
    const group = groupOf?.(wanted.request.tag) ?? "";
    if (countOf(state.calls, group) >= maxCalls || !mayWait(state, group)) continue;
    state.locked.splice(at, 1);
    return { group, batch: [wanted], skipLocked: false };
  }
  return undefined;
}

/** As many as may be of those that were not sent yet. */
function nextQueued(state: GrantsState): Call | undefined {
  const { maxBatch, maxCalls, groupOf } = state.options;
  let group: string | undefined;
  const batch: Wanted[] = [];
  const rest: Wanted[] = [];
  for (const wanted of state.queued) {
    const { tag } = wanted.request;
    if (batch.length === maxBatch || state.busy.has(tag)) {
      rest.push(wanted);
      continue;
    }
    const its = groupOf?.(tag) ?? "";
    if (group === undefined && countOf(state.calls, its) < maxCalls) group = its;
    if (its !== group) {
      rest.push(wanted);
      continue;
    }
    state.busy.add(tag);
    batch.push(wanted);
  }
  if (group === undefined) return undefined;
  state.queued = rest;
  if (batch.length === 1 && mayWait(state, group)) return { group, batch, skipLocked: false };
  batch.push(...takeLocked(state, group, maxBatch - batch.length));
  return { group, batch, skipLocked: true };
}

function takeLocked(state: GrantsState, group: string, limit: number): readonly Wanted[] {
  const { groupOf } = state.options;
  const taken = state.locked
    .filter(({ request }) => (groupOf?.(request.tag) ?? "") === group)
    .slice(0, limit);
  if (taken.length > 0) state.locked = state.locked.filter((wanted) => !taken.includes(wanted));
  return taken;
}

function mayWait({ options, waiting }: GrantsState, group: string): boolean {
  return countOf(waiting, group) < options.maxWaiting;
}

function countOf(counts: ReadonlyMap<string, number>, group: string): number {
  return counts.get(group) ?? 0;
}

/** A call ended, or is not waited for any longer. `locked`: those of it that it skipped. */
export function callEnded(state: GrantsState, call: Call, locked: readonly Wanted[] = []): void {
  lower(state.calls, call.group);
  if (!call.skipLocked) lower(state.waiting, call.group);
  for (const { request } of call.batch) state.busy.delete(request.tag);
  for (const wanted of locked) {
    state.busy.add(wanted.request.tag);
    state.locked.push(wanted);
  }
}

function lower(counts: Map<string, number>, group: string): void {
  const count = countOf(counts, group) - 1;
  if (count > 0) counts.set(group, count);
  else counts.delete(group);
}

/** Gives up everything that is not in flight. */
export function takeQueued(state: GrantsState): readonly Wanted[] {
  const { locked, queued } = state;
  for (const { request } of locked) state.busy.delete(request.tag);
  state.locked = [];
  state.queued = [];
  return [...locked, ...queued];
}

/** Whether an answer is one to its request: anything else is a fault of the store, and none of it is used. */
export function isAnswerTo(request: GrantRequest, grant: Granted | Refused): boolean {
  if (grant.tag !== request.tag) return false;
  if (grant.outcome === "refused") return true;
  return (
    Number.isInteger(grant.count) &&
    grant.count >= request.minCount &&
    grant.count <= request.count &&
    grant.base > request.after &&
    grant.base >= 0n
  );
}
