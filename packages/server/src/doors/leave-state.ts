/** Share of the time after which all have been told to go, so that what they began before is answered within it. */
const SPREAD_SHARE = 0.9;

/**
 * Who is told to go at which moment, when all are to go within a time. Pure; `leave.ts` is the shell.
 *
 * INVARIANT: when the time is over, all were told who had come by then; before, each look tells as large a share of those who
 * wait as the time since the last look is of what was left. So they are spread evenly, however many come meanwhile.
 */
export interface LeaveState {
  readonly lookedAt: number;
  readonly endsAt: number;
  /** What is owed, less than one. */
  readonly owed: number;
}

export function beginLeave(now: number, forMs: number): LeaveState {
  return { lookedAt: now, endsAt: now + forMs * SPREAD_SHARE, owed: 0 };
}

/** How many of those who wait are told now, those first who came first. */
export function lookAtLeave(
  { lookedAt, endsAt, owed }: LeaveState,
  now: number,
  waiting: number,
): readonly [LeaveState, number] {
  if (now >= endsAt) return [{ lookedAt: now, endsAt, owed: 0 }, waiting];
  const share = Math.max(0, now - lookedAt) / (endsAt - lookedAt);
  const due = owed + waiting * share;
  const count = Math.min(waiting, Math.floor(due));
  return [{ lookedAt: now, endsAt, owed: Math.min(due - count, 1) }, count];
}
