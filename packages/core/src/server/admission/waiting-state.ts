/**
 * Calls that wait in a server, for its store or for others, and whose they are. Pure.
 *
 * INVARIANTS
 * 1. At most `limit` calls wait: further ones are refused.
 * 2. Half of the limit is for who comes first. Beyond it, callers are refused who have their even share of the other half
 *    already, so that a caller whose calls do not wait is not refused because those of others do.
 */
export interface WaitingState {
  readonly limit: number;
  total: number;
  readonly callers: Map<string, number>;
}

export function createWaitingState(limit: number): WaitingState {
  return { limit, total: 0, callers: new Map() };
}

/** Whether it matters who calls. */
export function isCrowded({ total, limit }: WaitingState): boolean {
  return total >= limit / 2;
}

/** Whether a call may be made that perhaps waits. */
export function mayWait(state: WaitingState, caller: string): boolean {
  const { total, limit, callers } = state;
  // Invariant 1.
  if (total >= limit) return false;
  if (!isCrowded(state)) return true;
  // Invariant 2.
  return (callers.get(caller) ?? 0) < limit / 2 / Math.max(1, callers.size);
}

export function beganToWait(state: WaitingState, caller: string): void {
  state.total++;
  state.callers.set(caller, (state.callers.get(caller) ?? 0) + 1);
}

export function endedToWait(state: WaitingState, caller: string): void {
  const left = (state.callers.get(caller) ?? 0) - 1;
  state.total--;
  if (left > 0) state.callers.set(caller, left);
  else state.callers.delete(caller);
}
