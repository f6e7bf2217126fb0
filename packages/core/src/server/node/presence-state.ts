/**
 * Until when this server may issue, for each database of its store. Pure: the shell `presence.ts` of the server has the
 * clock and hears of polls.
 *
 * Others wait for this server only until its row has been silent for `maxOfflineMs` and a little more. What they conclude
 * from that silence has to be so.
 *
 * INVARIANTS
 * 1. Nothing is issued at or after `issueUntil`, and that is never later than `maxOfflineMs` after the *sending* of a
 *    renewal that was acknowledged and whose poll was obeyed as a whole. Counted from the answer it would be later than
 *    others reckon, since they may see the row as soon as the store has it.
 * 2. After a silence, when others may have gone on without this server, the first acknowledged renewal only makes it visible
 *    again. What was changed meanwhile is known for sure by a poll that was *sent* after that acknowledgement, since the
 *    snapshot of the renewal's own poll may be older than its row.
 */
export interface PresenceState {
  readonly maxOfflineMs: number;
  readonly parts: Map<string, Presence>;
}

interface Presence {
  /** Until when others surely wait for this server. */
  visibleUntil: number;
  issueUntil: number;
}

/** A renewal that was acknowledged, and whether what its poll told may be built upon. */
export interface Acknowledged {
  readonly part: string;
  readonly sentAt: number;
  readonly isContinuous: boolean;
}

/** `maxOfflineMs` undefined: this server never stops by itself, once its row is there. */
export function createPresenceState(maxOfflineMs: number | undefined): PresenceState {
  return { maxOfflineMs: maxOfflineMs ?? Infinity, parts: new Map() };
}

/** A row of an earlier life of this server, which is surely over, was obeyed and renewed so far. */
export function resumePresence(state: PresenceState, part: string, issueUntil: number): void {
  state.parts.set(part, { visibleUntil: issueUntil, issueUntil });
}

/** The store acknowledged a renewal that was sent at `sentAt`. To be told before anything is made of its poll. */
export function renewalAcknowledged(
  state: PresenceState,
  part: string,
  sentAt: number,
  now: number,
): Acknowledged {
  const known = state.parts.get(part) ?? { visibleUntil: -Infinity, issueUntil: -Infinity };
  state.parts.set(part, known);
  const isContinuous = now < known.visibleUntil;
  known.visibleUntil = Math.max(known.visibleUntil, sentAt + state.maxOfflineMs);
  return { part, sentAt, isContinuous };
}

/** All that was changed up to the snapshot of that renewal's poll is applied to everything this server holds. */
export function pollObeyed(
  state: PresenceState,
  { part, sentAt, isContinuous }: Acknowledged,
): void {
  const known = state.parts.get(part);
  if (known === undefined || !isContinuous) return;
  known.issueUntil = Math.max(known.issueUntil, sentAt + state.maxOfflineMs);
}

/** Until when ids are issued whose tags are in that database. */
export function issueUntil(state: PresenceState, part: string): number {
  return state.parts.get(part)?.issueUntil ?? -Infinity;
}
