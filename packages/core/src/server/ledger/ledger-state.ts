import type { Segment } from "../../segment/segment.ts";
import { lastOf } from "../../segment/segment.ts";
import { type LedgerEntry, type LedgerRow, MAX_LEDGER_BATCH } from "../store/ledger.ts";

/**
 * The rows of one server that the store does not have yet. Pure: the shell has the store and the timers.
 *
 * INVARIANTS
 * 1. At most `maxQueued` rows wait. Of what comes beyond that only the range is kept, of MAX_GAPS tags at most, and written
 *    as a row `gap`. A release is not dropped: it is refused, and its ids stay where they are.
 * 2. Rows go out in the order of their sequences, one batch at a time. What was sent with an unknown outcome is sent again
 *    before anything newer.
 * 3. A release is done once a batch with its row was acknowledged, and never before.
 */
export interface LedgerState {
  readonly maxQueued: number;
  readonly nodeId: string;
  readonly server: string;
  queued: LedgerRow[];
  /** How many rows at the beginning of `queued` are in flight. */
  inFlight: number;
  /** The sequence of the last row, of all queues of this server. */
  readonly count: { last: bigint };
  readonly gaps: Map<string, Gap>;
  dropped: number;
}

interface Gap {
  firstId: bigint;
  lastId: bigint;
  version: bigint;
  epoch: bigint;
}

/** What happened to some ids of a tag. */
export interface LedgerEvent {
  readonly entry: Exclude<LedgerEntry, "gap" | "give-back">;
  readonly tag: string;
  readonly segment: Segment;
  readonly version: bigint;
  readonly epoch: bigint;
  readonly instance: string;
  readonly principal: string;
  readonly atMs: number;
}

const MAX_GAPS = 1_000;

export function createLedgerState(options: {
  readonly maxQueued: number;
  readonly nodeId: string;
  readonly server: string;
  readonly count: { last: bigint };
}): LedgerState {
  return { ...options, queued: [], inFlight: 0, gaps: new Map(), dropped: 0 };
}

/** Notes what happened; false when there is no room for it. */
export function note(state: LedgerState, event: LedgerEvent): boolean {
  if (state.queued.length >= state.maxQueued) {
    if (event.entry !== "release") drop(state, event);
    return false;
  }
  const { segment } = event;
  push(state, event, segment.base, lastOf(segment));
  return true;
}

/** Whether something waits, or is in flight. */
export function hasRows({ queued, gaps }: LedgerState): boolean {
  return queued.length > 0 || gaps.size > 0;
}

/** The rows that go out next, which are in flight from now on; none while others are. */
export function nextBatch(state: LedgerState, atMs: number): readonly LedgerRow[] {
  if (state.inFlight > 0) return [];
  for (const [tag, gap] of state.gaps) {
    if (state.queued.length >= state.maxQueued) break;
    state.gaps.delete(tag);
    const { firstId, lastId, version, epoch } = gap;
    const facts = { tag, version, epoch, instance: "", principal: "", atMs };
    push(state, { entry: "gap", ...facts }, firstId, lastId);
  }
  const batch = state.queued.slice(0, MAX_LEDGER_BATCH);
  state.inFlight = batch.length;
  return batch;
}

/** The batch in flight is durable. */
export function batchStored(state: LedgerState): void {
  state.queued = state.queued.slice(state.inFlight);
  state.inFlight = 0;
}

/** It is not known what became of the batch in flight. */
export function batchFailed(state: LedgerState): void {
  state.inFlight = 0;
}

type Facts = Omit<LedgerRow, "firstId" | "lastId" | "nodeId" | "sequence" | "server">;

/** Field by field: it is done for every allocation, and a spread takes several times as long. */
function push(state: LedgerState, facts: Facts, firstId: bigint, lastId: bigint): void {
  const { nodeId, server, count } = state;
  count.last++;
  state.queued.push({
    entry: facts.entry,
    tag: facts.tag,
    firstId,
    lastId,
    version: facts.version,
    epoch: facts.epoch,
    nodeId,
    server,
    sequence: count.last,
    instance: facts.instance,
    principal: facts.principal,
    atMs: facts.atMs,
  });
}

function drop(state: LedgerState, { tag, segment, version, epoch }: LedgerEvent): void {
  state.dropped++;
  const [firstId, lastId] = [segment.base, lastOf(segment)];
  const gap = state.gaps.get(tag);
  if (gap === undefined) {
    if (state.gaps.size < MAX_GAPS) state.gaps.set(tag, { firstId, lastId, version, epoch });
    return;
  }
  if (firstId < gap.firstId) gap.firstId = firstId;
  if (lastId > gap.lastId) gap.lastId = lastId;
  if (version > gap.version) gap.version = version;
  if (epoch > gap.epoch) gap.epoch = epoch;
}
