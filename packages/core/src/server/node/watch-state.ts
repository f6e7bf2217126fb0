import type { NodeRow, StorePart } from "./ports.ts";

/**
 * What this server knows of all others on its store, and so by when nobody issues any more what a change has ended. Pure:
 * polls bring rows, and every time is this server's own monotonic clock.
 *
 * INVARIANTS
 * 1. A server has obeyed a revision when its row says so for the present history; the row was written by a renewal that was
 *    sent after the server had obeyed it.
 * 2. A silent server has stopped when a poll that was *sent* at least `maxOfflineMs` (and a hundredth more, for clocks that
 *    run differently) after this server first saw the row's number still finds that number. Neither the store's clock nor
 *    what a row says of time counts for anything.
 * 3. No server goes on for longer than `maxOfflineMs` after a change was in the store without having obeyed it, whatever
 *    its row says: a poll that does not show the change was sent before it.
 * 4. A server counts as alive until its row has stood still for SILENT_MS in which this database answered, so an outage of the
 *    store, when no row moves, says nothing of anybody.
 * 5. What is said here of a moment never becomes untrue: a server whose row appears, or moves again, later than that issues
 *    only after a poll that showed it everything changed before.
 */
export interface NodeWatchState {
  readonly parts: Map<string, WatchedPart>;
}

interface WatchedPart {
  incarnation: string;
  /** When the last poll that answered the rows was sent, and what revision it found. */
  askedAt: number;
  askedRevision: bigint;
  /** When the last poll was sent that was answered, and since when they have been answered without a long gap. */
  answeredAt: number;
  answeringSince: number;
  readonly nodes: Map<string, WatchedNode>;
  /** Servers that are gone: with the time, their times grow less. */
  readonly gone: Gone[];
  /** When this server first knew of a revision. */
  readonly known: Timeline;
  /** When every server was known to have obeyed a revision, or to have stopped. */
  readonly obeyed: Timeline;
}

interface WatchedNode {
  readonly row: NodeRow;
  /** When the row's number was first seen. */
  readonly seenAt: number;
  readonly isStopped: boolean;
  readonly isAlive: boolean;
}

/** A revision, and from when on something was so of it and of all below. */
type Timeline = { readonly at: number; readonly revision: bigint }[];

/** A server whose row was not there any more: by then it had stopped, and it had its own time to do so. */
interface Gone {
  readonly at: number;
  readonly maxOfflineMs: number;
}

/** Entries of a timeline. What was before the oldest is taken to be as late as that: later than it was, never earlier. */
const MAX_ENTRIES = 1_000;
/** How much longer a silence is waited for, since clocks do not run alike. */
const CLOCK_MARGIN = 1.01;

/** How long a row may stand still before its server counts as gone, and how long polls may go without an answer meanwhile. */
const SILENT_MS = 10_000;
const MAX_GAP_MS = 3_000;

/** A server that may still issue what a change has ended. */
export interface Laggard {
  readonly part: string;
  readonly row: NodeRow;
  readonly seenAt: number;
  /** When it has stopped if it is not heard of before; undefined: it never stops by itself. */
  readonly stopsAt: number | undefined;
}

/** By when every server has obeyed a change, or stopped. */
export interface Obedience {
  /** Undefined: not known. */
  readonly at: number | undefined;
  /** When this server first knew of the change; undefined: it does not yet. */
  readonly knownAt: number | undefined;
  readonly laggards: readonly Laggard[];
}

export function createNodeWatchState(): NodeWatchState {
  return { parts: new Map() };
}

/** Time on another machine's clock as it may be on this one's. */
export function withClockMargin(ms: number): number {
  return ms * CLOCK_MARGIN;
}

/**
 * A poll was answered and obeyed. `obeyed` is how far this server itself has obeyed that database; its own row says less and
 * is left out.
 */
export function sawPart(
  state: NodeWatchState,
  part: StorePart,
  own: { readonly id: string; readonly obeyed: bigint },
  times: { readonly sentAt: number; readonly now: number },
): void {
  const watched = partOf(state, part.name, part.incarnation);
  const { sentAt, now } = times;
  note(watched.known, part.revision, now);
  if (sentAt - watched.answeredAt > MAX_GAP_MS) watched.answeringSince = sentAt;
  watched.answeredAt = sentAt;
  if (part.nodes === undefined) return;
  const before = new Map(watched.nodes);
  watched.nodes.clear();
  watched.askedAt = sentAt;
  watched.askedRevision = part.revision;
  let least = own.obeyed < part.revision ? own.obeyed : part.revision;
  for (const row of part.nodes) {
    if (row.id === own.id) continue;
    const node = seen(before.get(row.id), row, times, watched.answeringSince);
    watched.nodes.set(row.id, node);
    if (node.isStopped) continue;
    const obeyed = obeyedIn(row, part.incarnation);
    if (obeyed < least) least = obeyed;
  }
  for (const { row } of before.values()) {
    const { maxOfflineMs = Infinity } = row;
    const present = watched.nodes.get(row.id)?.row;
    if (present === undefined || present.maxOfflineMs !== row.maxOfflineMs)
      noteGone(watched.gone, { at: now, maxOfflineMs });
  }
  note(watched.obeyed, least, now);
}

/** Whoever went earlier and had less time adds nothing to any moment. */
function noteGone(gone: Gone[], one: Gone): void {
  while ((gone.at(-1)?.maxOfflineMs ?? Infinity) <= one.maxOfflineMs && gone.length > 0) gone.pop();
  gone.push(one);
  const [first, second] = gone;
  if (gone.length <= MAX_ENTRIES || first === undefined || second === undefined) return;
  gone.splice(0, 2, { at: second.at, maxOfflineMs: first.maxOfflineMs });
}

/** A row of the store showed a change that no poll has shown yet. */
export function noteRevision(
  state: NodeWatchState,
  part: string,
  revision: bigint,
  now: number,
): void {
  const watched = state.parts.get(part);
  if (watched !== undefined) note(watched.known, revision, now);
}

/** By when all servers have obeyed a revision of a database, or stopped. */
export function obedienceOf(
  state: NodeWatchState,
  part: string,
  revision: bigint,
  own: { readonly maxOfflineMs: number | undefined },
): Obedience {
  const watched = state.parts.get(part);
  if (watched === undefined) return { at: undefined, knownAt: undefined, laggards: [] };
  const knownAt = timeOf(watched.known, revision);
  const confirmedAt = timeOf(watched.obeyed, revision);
  if (knownAt === undefined) return { at: undefined, knownAt: undefined, laggards: [] };
  // Whoever appeared since the rows were read, and before the change, is not known yet.
  const boundAt = watched.askedRevision < revision ? undefined : boundOf(watched, knownAt, own);
  if (confirmedAt !== undefined) {
    return { at: Math.min(confirmedAt, boundAt ?? Infinity), knownAt, laggards: [] };
  }
  const laggards = [...watched.nodes.values()]
    .filter(({ row, isStopped }) => !isStopped && obeyedIn(row, watched.incarnation) < revision)
    .map(({ row, seenAt }): Laggard => {
      const { maxOfflineMs } = row;
      // Invariant 3.
      const stopsAt =
        maxOfflineMs === undefined ? undefined : knownAt + withClockMargin(maxOfflineMs);
      return { part, row, seenAt, stopsAt };
    });
  return { at: boundAt, knownAt, laggards };
}

/** Invariant 3, for all servers that were there when a change was known, those too that are gone since. */
function boundOf(
  { nodes, gone }: WatchedPart,
  knownAt: number,
  own: { readonly maxOfflineMs: number | undefined },
): number | undefined {
  const latest = longest([own, ...[...nodes.values()].map(({ row }) => row)]);
  if (latest === undefined) return undefined;
  let boundAt = knownAt + withClockMargin(latest);
  for (const { at, maxOfflineMs } of gone) {
    if (at < knownAt) continue;
    boundAt = Math.max(boundAt, Math.min(at, knownAt + withClockMargin(maxOfflineMs)));
  }
  return boundAt;
}

/** By when all servers have heard of whatever a database had seen changed when `moment` came, or stopped. */
export function obedienceSince(
  state: NodeWatchState,
  part: string,
  moment: number,
  own: { readonly maxOfflineMs: number | undefined },
): Obedience {
  const watched = state.parts.get(part);
  if (watched === undefined || watched.askedAt < moment)
    return { at: undefined, knownAt: undefined, laggards: [] };
  const after = watched.known.find(({ at }) => at >= moment) ?? watched.known.at(-1);
  return obedienceOf(state, part, after?.revision ?? 0n, own);
}

/** Rows of servers that have stopped, which can be removed. */
export function stoppedNodes(
  state: NodeWatchState,
): readonly { readonly part: string; readonly row: NodeRow }[] {
  return [...state.parts].flatMap(([part, { nodes }]) =>
    [...nodes.values()].filter(({ isStopped }) => isStopped).map(({ row }) => ({ part, row })),
  );
}

/** How many rows there are. */
export function watchedCount({ parts }: NodeWatchState): number {
  let count = 0;
  for (const { nodes } of parts.values()) count += nodes.size;
  return count;
}

/** All rows as they were seen last. */
export function watchedNodes(
  state: NodeWatchState,
): readonly (Omit<WatchedNode, "isStopped"> & { readonly part: string })[] {
  return [...state.parts].flatMap(([part, { nodes }]) =>
    [...nodes.values()].map(({ row, seenAt, isAlive }) => ({ part, row, seenAt, isAlive })),
  );
}

function partOf(state: NodeWatchState, name: string, incarnation: string): WatchedPart {
  const known = state.parts.get(name);
  if (known?.incarnation === incarnation) return known;
  // Revisions of another history mean nothing here; the rows go on, and how long each has been silent.
  const nodes = known?.nodes ?? new Map<string, WatchedNode>();
  const fresh = {
    incarnation,
    askedAt: -Infinity,
    askedRevision: -1n,
    answeredAt: -Infinity,
    answeringSince: -Infinity,
    nodes,
    gone: [],
    known: [],
    obeyed: [],
  };
  state.parts.set(name, fresh);
  return fresh;
}

/** Invariants 2 and 4. */
function seen(
  before: WatchedNode | undefined,
  row: NodeRow,
  { sentAt, now }: { readonly sentAt: number; readonly now: number },
  answeringSince: number,
): WatchedNode {
  if (before?.row.renewals !== row.renewals) {
    return { row, seenAt: now, isStopped: false, isAlive: true };
  }
  const { maxOfflineMs } = row;
  const { seenAt } = before;
  const isStopped = maxOfflineMs !== undefined && sentAt - seenAt >= withClockMargin(maxOfflineMs);
  const isAlive = before.isAlive && sentAt - Math.max(seenAt, answeringSince) < SILENT_MS;
  return { row, seenAt, isStopped, isAlive };
}

function obeyedIn(row: NodeRow, incarnation: string): bigint {
  return row.incarnation === incarnation ? row.obeyed : 0n;
}

function note(timeline: Timeline, revision: bigint, at: number): void {
  const last = timeline.at(-1);
  if (last !== undefined && revision <= last.revision) return;
  timeline.push({ at, revision });
  if (timeline.length > MAX_ENTRIES) timeline.shift();
}

/** Since when something is so of a revision; undefined: it is not yet. */
function timeOf(timeline: Timeline, revision: bigint): number | undefined {
  return timeline.find((entry) => entry.revision >= revision)?.at;
}

function longest(
  nodes: readonly { readonly maxOfflineMs: number | undefined }[],
): number | undefined {
  let most = 0;
  for (const { maxOfflineMs } of nodes) {
    if (maxOfflineMs === undefined) return undefined;
    most = Math.max(most, maxOfflineMs);
  }
  return most;
}
