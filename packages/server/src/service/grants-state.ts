import type { Grant, GrantRequest } from "@idmint/core";

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
 */
export interface GrantsState {
  readonly options: GrantsOptions;
  queued: Wanted[];
  readonly busy: Set<string>;
  readonly calls: Map<string, number>;
}

export interface GrantsOptions {
  readonly maxBatch: number;
  readonly maxCalls: number;
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
  return { options, queued: [], busy: new Set(), calls: new Map() };
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
}

/** The next call, which is in flight from now on; undefined when none may be sent. */
export function nextCall(state: GrantsState): Call | undefined {
  const { maxBatch, maxCalls, groupOf } = state.options;
  if (state.queued.length === 0) return undefined;
  // A store that is one and busy: a long queue is not gone through for nothing at each turn.
  if (groupOf === undefined && (state.calls.get("") ?? 0) >= maxCalls) return undefined;
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
    if (group === undefined && (state.calls.get(its) ?? 0) < maxCalls) group = its;
    if (its !== group) {
      rest.push(wanted);
      continue;
    }
    state.busy.add(tag);
    batch.push(wanted);
  }
  if (group === undefined) return undefined;
  state.queued = rest;
  state.calls.set(group, (state.calls.get(group) ?? 0) + 1);
  return { group, batch };
}

/** A call ended, or is not waited for any longer. */
export function callEnded(state: GrantsState, { group, batch }: Call): void {
  const calls = (state.calls.get(group) ?? 0) - 1;
  if (calls > 0) state.calls.set(group, calls);
  else state.calls.delete(group);
  for (const { request } of batch) state.busy.delete(request.tag);
}

/** Gives up everything that was not sent. */
export function takeQueued(state: GrantsState): readonly Wanted[] {
  const queued = state.queued;
  state.queued = [];
  return queued;
}

/** Whether an answer is one to its request: anything else is a fault of the store, and none of it is used. */
export function isAnswerTo(request: GrantRequest, grant: Grant): boolean {
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
