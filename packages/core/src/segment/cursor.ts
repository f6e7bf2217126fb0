import type { WasteCause } from "../events.ts";
import { MAX_SAFE_ID } from "../limits.ts";
import type { BufferOptions, BufferState, Effect, HeldLoad } from "./buffer-types.ts";
import { CALM_STRIDE } from "./burst.ts";
import { commonIdOf } from "./seen-ranges.ts";
import { idAt, type Segment, slice } from "./segment.ts";

// What a buffer holds, and the cursor that issues it: the part of the state that keeps invariant 1.

export function createBufferState<R>(tag: string, options: BufferOptions): BufferState<R> {
  return {
    tag,
    options,
    epoch: 0n,
    generation: undefined,
    loads: [],
    index: 0,
    offset: 0,
    base: 0n,
    baseNumber: 0,
    increment: 1,
    limit: 0,
    numberLimit: 0,
    issuedBefore: 0,
    usedBefore: 0,
    lookedAt: 0,
    lookedFrom: 0,
    stride: CALM_STRIDE,
    highest: 0n,
    size: options.min,
    rate: undefined,
    loading: { phase: "idle" },
    nextToken: 1,
    waiters: [],
    fenced: undefined,
    keepReady: false,
  };
}

/** Ids issued from here so far, or handed out in segments. */
export function issuedTotal<R>(state: BufferState<R>): number {
  return state.issuedBefore + state.offset;
}

/** Ids in memory. */
export function readyCount<R>(state: BufferState<R>): number {
  return heldCount(state) - state.usedBefore - state.offset;
}

/** Ids of the loads that are held, the issued ones included. */
export function heldCount<R>(state: BufferState<R>): number {
  let held = 0;
  for (const load of state.loads) held += load.count;
  return held;
}

/** The next id that would be issued; undefined when none is ready. */
export function peekId<R>(state: BufferState<R>): bigint | undefined {
  const segment = currentSegment(state);
  return segment === undefined ? undefined : idAt(segment, state.offset);
}

/** The next id, if it is below the limit of the warm path; undefined: it takes the slow path. */
export function takeWarm<R>(state: BufferState<R>): bigint | undefined {
  const offset = state.offset;
  if (offset >= state.limit) return undefined;
  state.offset = offset + 1;
  return state.increment === 1
    ? state.base + BigInt(offset)
    : state.base + BigInt(offset) * BigInt(state.increment);
}

/**
 * Moves the cursor over exactly `count` ids and answers them, or answers undefined and moves nothing. The
 * segments of one answer are ascending. A count of 0 is answered (with no ids) once some are ready.
 */
export function take<R>(state: BufferState<R>, count: number): readonly Segment[] | undefined {
  if (readyCount(state) < Math.max(count, 1)) return undefined;
  const taken: Segment[] = [];
  for (let rest = count; rest > 0;) {
    const segment = currentSegment(state);
    if (segment === undefined) throw new Error("the cursor ran past what is held");
    const part = Math.min(rest, segment.count - state.offset);
    taken.push(slice(segment, state.offset, part));
    state.offset += part;
    rest -= part;
    skipUsedUp(state);
  }
  // Ids that were put back may be lower than those of the load that they stand behind.
  // oxlint-disable-next-line no-array-sort -- Nobody else has it, and a copy takes as long as all the rest.
  return taken.sort(byBase);
}

function byBase(a: Segment, b: Segment): number {
  return a.base < b.base ? -1 : 1;
}

/** An id of this segment that is in one of the loads held, issued or not. */
export function heldIdOf<R>(state: BufferState<R>, segment: Segment): bigint | undefined {
  for (const load of state.loads) {
    for (const held of load.segments) {
      const id = commonIdOf(held, segment);
      if (id !== undefined) return id;
    }
  }
  return undefined;
}

/** The unused end of what each load brought, oldest first; afterwards the buffer holds nothing. */
export function takeUnused<R>(
  state: BufferState<R>,
): { receipt: R; segments: readonly Segment[] }[] {
  const unused: { receipt: R; segments: readonly Segment[] }[] = [];
  for (const [at, load] of state.loads.entries()) {
    if (load.grant === undefined) continue;
    const segments = at === 0 ? unusedSegments(state, load) : load.segments;
    unused.push({ receipt: load.grant.receipt, segments });
  }
  state.loads = [];
  enterFirstLoad(state);
  setLimits(state);
  return unused;
}

export function dropLoads<R>(
  state: BufferState<R>,
  isBad: (load: HeldLoad<R>) => boolean,
  cause: WasteCause,
  effects: Effect[],
): void {
  const before = readyCount(state);
  const first = state.loads[0];
  const kept = state.loads.filter((load) => !isBad(load));
  if (kept.length === state.loads.length) return;
  state.loads = kept;
  if (state.loads[0] !== first) enterFirstLoad(state);
  effects.push({ type: "wasted", count: before - readyCount(state), cause });
  setLimits(state);
}

/** Invariant 7: none of what is held, or was taken from here, may be issued any more. */
export function endGeneration<R>(
  state: BufferState<R>,
  cause: WasteCause,
  effects: Effect[],
): void {
  state.generation = undefined;
  dropLoads(state, () => true, cause, effects);
}

/** Under which what is taken from now on may come back. */
export function generationOf<R>(state: BufferState<R>): symbol {
  return (state.generation ??= Symbol("generation"));
}

/** After the cursor moved, or the clock was looked at: `limit` is where the warm path ends. */
export function setLimits<R>(state: BufferState<R>): void {
  const segment = currentSegment(state);
  if (segment === undefined || state.fenced !== undefined) {
    state.limit = 0;
    state.numberLimit = 0;
    return;
  }
  // The last id takes the slow path, so that the cursor never rests behind a segment's end.
  let limit = segment.count - 1;
  if (state.loading.phase !== "loading" && !hasNext(state)) {
    // The id that reaches the mark takes the slow path, and starts the prefetch there.
    const mark = prefetchMark(state) - state.usedBefore - 1;
    limit = Math.min(limit, mark);
  }
  // Invariant 6. What never expires needs no clock. Whoever looks outside of a burst issues the next id at once, or none.
  if (state.loads[0]?.expiresAt !== Infinity) {
    const ahead = state.stride > 1 ? state.stride : 0;
    limit = Math.min(limit, state.lookedFrom + ahead - state.issuedBefore);
  }
  state.limit = limit;
  state.numberLimit = Math.min(limit, safeCount(segment));
}

/** Whether ids that expire may be issued without a look at the clock. */
export function isInBurst<R>({ stride, loads }: BufferState<R>): boolean {
  return stride > 1 && (loads[0]?.expiresAt ?? Infinity) !== Infinity;
}

/** The next id looks at the clock. */
export function endBurst<R>(state: BufferState<R>): void {
  state.stride = 1;
  setLimits(state);
}

/** The cursor never rests behind a segment's last id: it goes on to the next segment, or the next load. */
function skipUsedUp<R>(state: BufferState<R>): void {
  const segment = currentSegment(state);
  if (segment === undefined || state.offset < segment.count) return;
  state.issuedBefore += segment.count;
  state.usedBefore += segment.count;
  state.offset = 0;
  state.index++;
  if (currentSegment(state) === undefined) {
    state.loads = state.loads.slice(1);
    enterFirstLoad(state);
  } else {
    unpackSegment(state);
  }
}

/** Puts the cursor before the first id of the first load. What was issued before must be accounted for already. */
export function enterFirstLoad<R>(state: BufferState<R>): void {
  state.issuedBefore += state.offset;
  state.index = 0;
  state.offset = 0;
  state.usedBefore = 0;
  // The next id looks at the clock: with this load ids may begin to expire.
  state.stride = Math.min(state.stride, 1);
  unpackSegment(state);
}

/** Put-back ids do not count as a next load: they are few, and their end is not the floor. */
export function hasNext<R>(state: BufferState<R>): boolean {
  return state.loads.length > 1 && state.loads[state.loads.length - 1]?.grant !== undefined;
}

export function prefetchMark<R>(state: BufferState<R>): number {
  const count = state.loads[0]?.count ?? 0;
  return Math.ceil(count * state.options.prefetchShare);
}

function currentSegment<R>(state: BufferState<R>): Segment | undefined {
  return state.loads[0]?.segments[state.index];
}

function unpackSegment<R>(state: BufferState<R>): void {
  const segment = currentSegment(state);
  state.base = segment?.base ?? 0n;
  state.baseNumber = Number(state.base);
  state.increment = segment?.increment ?? 1;
}

/** At least one id, since the cursor never rests behind a load's last one. */
function unusedSegments<R>(state: BufferState<R>, load: HeldLoad<R>): readonly Segment[] {
  const { index, offset } = state;
  return load.segments
    .slice(index)
    .map((one, at) => (at === 0 ? slice(one, offset, one.count - offset) : one));
}

/** How many ids from a segment's base on are exact as JavaScript numbers, also beyond its end. */
function safeCount(segment: Segment): number {
  if (segment.base > MAX_SAFE_ID) return 0;
  return Number((MAX_SAFE_ID - segment.base) / BigInt(segment.increment)) + 1;
}
