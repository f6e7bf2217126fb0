import { ANSWER_MARGIN_MS, tooManyWaiters } from "../call.ts";
import { type IdmintError, segmentNotReady } from "../errors.ts";
import type { BufferState } from "./buffer-types.ts";
import type { Segment } from "./segment.ts";

/** How a call that waits is ended. */
export interface Pending {
  readonly resolve: (segments: readonly Segment[]) => void;
  readonly reject: (error: IdmintError) => void;
  readonly cleanUp: () => void;
}

/** A waiter's time is over, or its caller went away. False when it had its answer before. */
export function removeWaiter<R>({ waiters }: BufferState<R>, id: number): boolean {
  // They stand in the order of their ids, and thousands may go away at once.
  let from = 0;
  let to = waiters.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((waiters[middle]?.id ?? id) < id) from = middle + 1;
    else to = middle;
  }
  if (waiters[from]?.id !== id) return false;
  waiters.splice(from, 1);
  return true;
}

/** The refusal of a waiter whose time is over. */
export function overdue<R>({ tag, loading }: BufferState<R>, now: number): IdmintError {
  const retryAt = loading.phase === "backoff" ? loading.retryAt : 0;
  const cause = loading.phase === "idle" ? undefined : loading.error;
  return segmentNotReady(tag, Math.max(ANSWER_MARGIN_MS, retryAt - now), cause);
}

/** Throws OVERLOADED when no further call may wait, where so many wait beside the buffer. */
export function assertRoom<R>({ tag, waiters, options }: BufferState<R>, beside: number): void {
  const { maxWaiters } = options;
  if (beside + waiters.length >= maxWaiters) throw tooManyWaiters(tag, maxWaiters);
}
