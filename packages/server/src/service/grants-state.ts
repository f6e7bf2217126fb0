import type { Grant, GrantRequest } from "@idmint/core";

/**
 * Which loads go into which call of `store.grant`. Pure: the shell `grants.ts` has the promises and the store.
 *
 * INVARIANTS
 * 1. No tag is in two calls at once. So between the moment a request takes the highest version seen and its answer, no
 *    other grant of this server raises the tag's version, and an answer that is not above it means that the store went
 *    back, even when it went back between two loads of one tag.
 * 2. At most `maxCalls` calls are in flight, with at most `maxBatch` tags each.
 * 3. At most `maxQueued` requests wait; they are sent in the order they came, a tag's own in that order always.
 */
export interface GrantsState {
  readonly options: GrantsOptions;
  queued: Wanted[];
  readonly busy: Set<string>;
  calls: number;
}

export interface GrantsOptions {
  readonly maxBatch: number;
  readonly maxCalls: number;
  readonly maxQueued: number;
}

/** A load that waits to be sent. */
export interface Wanted {
  readonly id: number;
  readonly request: Omit<GrantRequest, "seenVersion">;
}

export function createGrantsState(options: GrantsOptions): GrantsState {
  return { options, queued: [], busy: new Set(), calls: 0 };
}

/** False when too many wait already. */
export function want(state: GrantsState, wanted: Wanted): boolean {
  if (state.queued.length >= state.options.maxQueued) return false;
  state.queued.push(wanted);
  return true;
}

/** The requests of the next call, which is in flight from now on; undefined when none may be sent. */
export function nextCall(state: GrantsState): readonly Wanted[] | undefined {
  const { maxBatch, maxCalls } = state.options;
  if (state.calls >= maxCalls || state.queued.length === 0) return undefined;
  const batch: Wanted[] = [];
  const rest: Wanted[] = [];
  for (const wanted of state.queued) {
    const { tag } = wanted.request;
    if (batch.length < maxBatch && !state.busy.has(tag)) {
      state.busy.add(tag);
      batch.push(wanted);
    } else {
      rest.push(wanted);
    }
  }
  if (batch.length === 0) return undefined;
  state.queued = rest;
  state.calls++;
  return batch;
}

/** A call ended, or is not waited for any longer. */
export function callEnded(state: GrantsState, batch: readonly Wanted[]): void {
  state.calls--;
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
