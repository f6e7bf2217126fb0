import type { Hearing, HeardClaimant } from "./ports.ts";

/**
 * How long an accept waits for servers that were asked what they were granted. Pure.
 *
 * INVARIANT: whoever is known to run has spoken, or was waited for until `mostMs`: a server whose row has moved since it was
 * asked, and one that has begun to speak, also where rows do not move (a marked store renews none). Rows that stand still say
 * nothing of anybody, so they are waited for as long as everybody is, `leastMs`. What was said is dropped when the store is seen
 * to have gone back since, or was out of sight for so long that it may have. After a shorter pause whoever polls has polled twice,
 * and has marked the store if it lost something in that pause, unless there are pauses until `mostMs` and `leastMs` are over.
 */
export interface AskState {
  readonly times: AskTimes;
  readonly startedAt: number;
  readonly first: ReadonlyMap<string, bigint>;
  readonly moved: Set<string>;
  last: Hearing;
  pages: number;
  /** When a page came last. */
  pageAt: number;
  /** When the last look was sent that was answered. */
  seenAt: number;
  /** When the last pause ended, or this began. */
  steadyAt: number;
}

export interface AskTimes {
  /** Two polls, so that whoever polls has seen the ask. */
  readonly leastMs: number;
  /** Twice what a poll, its time-out and the pause after it take. */
  readonly mostMs: number;
  /** How long one goes on waiting for a server that is still speaking, and what pause ends that. */
  readonly longestMs: number;
  readonly pauseMs: number;
}

export const ASK_TIMES: AskTimes = {
  leastMs: 3_000,
  mostMs: 12_000,
  longestMs: 55_000,
  pauseMs: 5_000,
};

/** Between two looks that are answered; after more, the store may have been put back to after the first one. */
export const QUIET_MS = 3_000;
/** What is a pause between the sending of a look and the answer to the next one. */
export const STEADY_MS = 1_000;

/** `sentAt`: when the ask was sent. */
export function createAskState(
  hearing: Hearing,
  now: number,
  times: AskTimes,
  sentAt: number = now,
): AskState {
  return {
    times,
    startedAt: now,
    first: new Map(hearing.nodes.map(({ id, renewals }) => [id, renewals])),
    moved: new Set(),
    last: hearing,
    pages: pagesOf(hearing),
    pageAt: now,
    seenAt: sentAt,
    steadyAt: now,
  };
}

/** Whether the accept waits, has heard enough, or asks anew. */
export type AskVerdict = "anew" | "done" | "wait";

/** A look that was sent at `sentAt` was answered; undefined: the store did not answer. */
export function heard(
  state: AskState,
  hearing: Hearing | undefined,
  now: number,
  sentAt: number = now,
): AskVerdict {
  const outOfSightMs = now - state.seenAt;
  const isUnsure = outOfSightMs > QUIET_MS;
  if (hearing?.isEarlier === true || (hearing !== undefined && isUnsure)) return "anew";
  if (hearing !== undefined && outOfSightMs > STEADY_MS) state.steadyAt = now;
  if (hearing !== undefined) state.seenAt = sentAt;
  if (isWaiting(state, hearing, now)) return "wait";
  if (isUnsure) return "anew";
  // The last look before an accept is an answered one.
  return hearing === undefined ? "wait" : "done";
}

function isWaiting(state: AskState, hearing: Hearing | undefined, now: number): boolean {
  if (hearing !== undefined) {
    state.last = hearing;
    for (const { id, renewals } of hearing.nodes) {
      if (state.first.get(id) !== renewals) state.moved.add(id);
    }
    const pages = pagesOf(hearing);
    if (pages > state.pages) state.pageAt = now;
    state.pages = pages;
  }
  const { leastMs, mostMs, longestMs, pauseMs } = state.times;
  const waitedMs = now - state.startedAt;
  if (waitedMs < leastMs) return true;
  if (waitedMs >= longestMs) return false;
  if (now - state.steadyAt < leastMs && waitedMs < mostMs + leastMs) return true;
  const isSpeaking = state.last.claimants.some(({ hasSpoken }) => !hasSpoken);
  if (waitedMs >= mostMs) return isSpeaking && now - state.pageAt < pauseMs;
  return isSpeaking || hasSilentMover(state);
}

/** Rows of servers that moved, are still there, and belong to nobody who claims. */
function hasSilentMover({ moved, last }: AskState): boolean {
  const claimants = new Set(last.claimants.map(({ id }) => id));
  return last.nodes.some(({ id }) => moved.has(id) && !claimants.has(id));
}

function pagesOf({ claimants }: Hearing): number {
  return claimants.reduce((sum, { pages }) => sum + pages, 0);
}

/**
 * What an accept knows of one server: `all` that it was granted, all `since` a time, a `part` of it, or `nothing`, since its row
 * stood still, or it did not answer in time.
 */
export interface AskedServer {
  readonly id: string;
  readonly instance: string;
  readonly address: string;
  readonly told: "all" | "nothing" | "part" | "since";
  /** Of `all` and `since`: since when it remembers, by its own clock, milliseconds since 1970. */
  readonly sinceMs: number | undefined;
  /** Whether its row moved while it was asked. */
  readonly isMoving: boolean;
}

/** All servers that have rows, or spoke, by name. `claimants`: as the accept found them, which may be later than they were heard. */
export function askedServers(
  { last, moved }: AskState,
  claimants: readonly HeardClaimant[],
): readonly AskedServer[] {
  const spoke = new Set(claimants.map(({ id }) => id));
  const silent = last.nodes
    // The row that an accept leaves stands for servers that nobody knows.
    .filter(({ id }) => !spoke.has(id) && !id.startsWith("before-"))
    .map(({ id, instance, address }): AskedServer => {
      const told = "nothing";
      return { id, instance, address, told, sinceMs: undefined, isMoving: moved.has(id) };
    });
  const speaking = claimants.map(({ id, instance, address, ...its }): AskedServer => {
    const { hasSpoken, isWhole } = its;
    const told = hasSpoken ? (isWhole ? "all" : "since") : "part";
    const sinceMs = hasSpoken ? its.sinceMs : undefined;
    return { id, instance, address, told, sinceMs, isMoving: true };
  });
  return [...speaking, ...silent].toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

function keyOf({ instance, id }: AskedServer): string {
  return `${instance} ${id}`;
}
