import type { Segment } from "../segment/segment.ts";
import { type Made, madeOf, type MadeTimes } from "./made-times.ts";
import {
  bigintOf,
  composeHalves,
  powerOf2,
  type SnowflakeLayout,
  type SnowflakeParts,
  tickAt,
  timeOf,
} from "./layout.ts";

/**
 * The ids of one worker, as pure state: (state, reading of the clocks) → which ids may be made. It is changed in place and
 * knows no clock, no lease and no promise. `generator.ts` is the shell.
 *
 * INVARIANTS
 * 1. (extension, tick, sequence) is the lowest that may still be made, and only rises: whatever is below it was made or
 *    given up. It rises over an id before that id leaves.
 * 2. An id is made only of a tick that lies wholly within the reservation: from its first millisecond to its last, both
 *    reserved by the registry. No clock is needed for that.
 * 3. A sequence that is used up is carried to the next tick at once, before any clock is looked at, so a clock that
 *    stands still or goes back finds the tick that is next and never the one that is used up.
 * 4. A tick is entered only when a clock has come within MAX_BORROW_MS of it.
 * 5. Of the ids that differ in tick and sequence alone, only one generator of those that share a MadeSnowflakes makes any, and it
 *    begins above all that any of them made before. The registry reserves no time twice; but one that went back may, and
 *    nobody has to have seen it.
 */
export interface GeneratorState {
  readonly layout: SnowflakeLayout;
  readonly tag: string;
  readonly made: MadeSnowflakes;
  /** What was made, by all of the process, of the ids that it makes; undefined before the first reservation. */
  own: Made<GeneratorState> | undefined;
  /** How far the clock may be set back for the generator to wait until it has caught up. */
  readonly clockWaitMs: number;
  dataCenter: number;
  worker: number;
  extension: number;
  /** The tick of the next id. */
  tick: number;
  sequence: number;
  /** Last tick of the reservation; below `tick` when nothing of it is left. */
  lastTick: number;
  /** The last tick of which ids may be made before the clocks are looked at again. */
  limitTick: number;
  /**
   * The time by the highest clock that was believed, and when that was on the monotonic clock. While the wall clock is
   * behind that time, it goes on by the monotonic clock.
   */
  timeMs: number;
  timeAt: number;
  /** By how much the wall clock is behind that time, as far as it is known and accepted. */
  driftMs: number;
  /**
   * How far ahead of the wall clock the reservation may begin. If it begins further ahead, the clock counts as set
   * back.
   */
  maxLeadMs: number;
  /** Whether no id was made of the reservation yet. */
  isUntouched: boolean;
}

/** How far a process came with its snowflakes, by whichever generators. */
export type MadeSnowflakes = MadeTimes<GeneratorState>;

/** Both clocks, read at the same moment. */
export interface ClockReading {
  /** Milliseconds since 1970; may jump in either direction. */
  readonly wallMs: number;
  /** Monotonic milliseconds from any origin. */
  readonly monotonicMs: number;
}

/** What the registry has reserved for a worker. */
export interface Reservation {
  readonly dataCenter: number;
  readonly workerId: number;
  readonly extension: number;
  /** First and last millisecond reserved. */
  readonly notBeforeMs: number;
  readonly reservedUntilMs: number;
}

/**
 * What a look at the clocks finds.
 * - ready: at least the next id may be made.
 * - wait: no id may be made for `ms`. Nothing is wrong, or the clock went back so little that it is waited for.
 * - unreserved: the time is not reserved (yet). `aheadMs` is by how much the wall clock is past the reservation.
 * - clock-back: the clock is `driftMs` behind the time of the next id. The tag's policy says what to do.
 * - exhausted: the bits of the time are used up.
 */
export type Verdict =
  | { readonly type: "ready" }
  | { readonly type: "wait"; readonly ms: number }
  | { readonly type: "unreserved"; readonly aheadMs: number }
  | { readonly type: "clock-back"; readonly driftMs: number }
  | { readonly type: "exhausted" };

/** How far ahead of the clock ids may be made when the sequences of its ticks are used up. */
const MAX_BORROW_MS = 50;
/** Two clocks that are read in whole milliseconds, one of which is slewed, differ by this much without a fault. */
const NOISE_MS = 2;
const READY: Verdict = { type: "ready" };

/** The settings of a tag that its ids are made by. */
export interface GeneratorOptions {
  readonly tag: string;
  readonly layout: SnowflakeLayout;
  readonly clockWaitMs: number;
}

export function createGeneratorState(
  { tag, layout, clockWaitMs }: GeneratorOptions,
  made: MadeSnowflakes,
): GeneratorState {
  return {
    tag,
    layout,
    made,
    own: undefined,
    clockWaitMs,
    dataCenter: 0,
    worker: 0,
    extension: 0,
    tick: 0,
    sequence: 0,
    lastTick: -1,
    limitTick: -1,
    timeMs: layout.timeOriginMs,
    timeAt: 0,
    driftMs: 0,
    maxLeadMs: 0,
    isUntouched: true,
  };
}

/**
 * Takes up a reservation of a new lease, or of the next extension. Its ids may be ahead of the wall clock by up to
 * `maxLeadMs`, which is what the registry may have reserved ahead of its own clock. If they are further ahead, the
 * clock counts as set back.
 *
 * INVARIANT: by the registry's word, a new lease starts above all that was reserved for any lease of its worker id, and of
 * a new extension no id was ever made. Of its own ids a process needs nobody's word: invariant 5.
 */
export function takeUp(
  state: GeneratorState,
  reservation: Reservation,
  reading: ClockReading,
  maxLeadMs: number,
): void {
  const { layout } = state;
  giveUp(state);
  state.dataCenter = reservation.dataCenter;
  state.worker = reservation.workerId;
  state.extension = reservation.extension;
  // The first tick that begins at or after notBeforeMs.
  const firstTick = tickAt(layout, reservation.notBeforeMs + layout.timeUnitMs - 1);
  state.tick = Math.max(enter(state), firstTick);
  state.sequence = 0;
  extend(state, reservation.reservedUntilMs);
  state.maxLeadMs = maxLeadMs;
  state.isUntouched = true;
  begin(state, reading);
}

/** Takes over from whoever made such ids in this process, and answers the first tick of which none were made. */
function enter(state: GeneratorState): number {
  const { tag, layout, dataCenter, worker, extension, made } = state;
  const place = JSON.stringify({ tag, layout, dataCenter, worker, extension });
  const own = madeOf(made, place, layout);
  if (own.maker !== undefined) giveUp(own.maker);
  own.maker = state;
  state.own = own;
  return own.nextTick;
}

/** Begins the time at the beginning of the reservation, or at the wall clock when that is later. */
function begin(state: GeneratorState, reading: ClockReading): void {
  const leadMs = timeOf(state.layout, state.tick) - reading.wallMs;
  state.timeMs = reading.wallMs + Math.max(0, leadMs);
  state.timeAt = reading.monotonicMs;
  state.driftMs = leadMs > 0 && leadMs <= state.maxLeadMs ? leadMs : 0;
}

/**
 * The registry has reserved more time of the same lease and extension. A reservation never falls. False: another generator of
 * this process makes ids of the worker id, or made some since, so two leases of it were good, and the registry went back
 * (invariant 5). What it reserves for this one others may have had too.
 */
export function extend(state: GeneratorState, reservedUntilMs: number): boolean {
  const { layout, own } = state;
  if (own?.maker !== state) return false;
  // The last tick that ends at or before reservedUntilMs.
  const last = tickAt(layout, reservedUntilMs + 1) - 1;
  state.lastTick = Math.max(state.lastTick, Math.min(last, 2 ** layout.timeBits - 1));
  return true;
}

/** Makes no more ids under this lease. */
export function giveUp(state: GeneratorState): void {
  state.lastTick = -1;
  state.limitTick = -1;
  const { own } = state;
  if (own?.maker !== state) return;
  own.maker = undefined;
  if (state.isUntouched) return;
  own.nextTick = Math.max(own.nextTick, state.sequence === 0 ? state.tick : state.tick + 1);
}

/**
 * The time of the next id, which a reservation must be ahead of. An id that is ahead of the clock keeps its time until
 * the clock has reached it. So a lead is asked for once, and not again and again.
 */
export function timeNow(state: GeneratorState, reading: ClockReading): number {
  return Math.max(reading.wallMs, timeOf(state.layout, state.tick));
}

/** The time by the highest clock that was believed, carried on by the monotonic clock. */
function carriedOn(state: GeneratorState, reading: ClockReading): number {
  return state.timeMs + Math.max(0, reading.monotonicMs - state.timeAt);
}

/** Looks at the clocks, and moves on to the tick that they show. Ids may be made only after a look is `ready`. */
export function look(state: GeneratorState, reading: ClockReading): Verdict {
  const { layout } = state;
  state.limitTick = -1;
  const clockTick = tickAt(layout, reading.wallMs);
  if (clockTick < state.tick) return lookBehind(state, reading);
  // Only a clock within the reservation is believed: the registry has confirmed no other.
  if (clockTick > state.lastTick) return outside(state, clockTick, reading);
  if (clockTick > state.tick) {
    state.tick = clockTick;
    state.sequence = 0;
  }
  believe(state, reading.wallMs, reading.monotonicMs);
  state.driftMs = 0;
  return READY;
}

/**
 * Looks at a wall clock that is behind the next id. Either ids were borrowed from the next ticks, or the worker id was
 * taken over ahead of the clock, or the clock went back. If it went back within what is left of the reservation, the
 * monotonic clock takes over. Ticks then advance only as their sequences run out, so the clock catches up with them.
 */
function lookBehind(state: GeneratorState, reading: ClockReading): Verdict {
  const { layout } = state;
  // A clock cannot go back from what it showed before any id was made by it: it may have been set right since.
  if (state.isUntouched) begin(state, reading);
  const carriedMs = carriedOn(state, reading);
  // What the wall clock would show if nobody had set it back since the last look.
  const expectedMs = carriedMs - state.driftMs;
  const stepMs = expectedMs - reading.wallMs;
  const nextMs = timeOf(layout, state.tick);
  if (stepMs > NOISE_MS) {
    const leftMs = timeOf(layout, state.lastTick + 1) - Math.max(expectedMs, nextMs);
    if (stepMs > leftMs) {
      const driftMs = carriedMs - reading.wallMs;
      if (driftMs <= state.clockWaitMs) return { type: "wait", ms: 2 * driftMs };
      return { type: "clock-back", driftMs };
    }
  }
  if (state.tick > state.lastTick) return outside(state, state.tick, reading);
  const timeMs = Math.max(reading.wallMs, Math.min(carriedMs, nextMs));
  state.driftMs = timeMs - reading.wallMs;
  believe(state, timeMs, reading.monotonicMs);
  if (state.tick <= state.limitTick) return READY;
  return { type: "wait", ms: timeOf(layout, state.tick) - MAX_BORROW_MS - timeMs };
}

function believe(state: GeneratorState, timeMs: number, monotonicMs: number): void {
  state.timeMs = timeMs;
  state.timeAt = monotonicMs;
  state.limitTick = Math.min(state.lastTick, tickAt(state.layout, timeMs + MAX_BORROW_MS));
}

function outside(state: GeneratorState, tick: number, reading: ClockReading): Verdict {
  if (tick >= 2 ** state.layout.timeBits) return { type: "exhausted" };
  const reservedMs = timeOf(state.layout, state.lastTick + 1);
  return { type: "unreserved", aheadMs: Math.max(0, reading.wallMs - reservedMs) };
}

/** How many ids may be made of the present tick before the next look. */
export function leftOfTick(state: GeneratorState): number {
  return state.tick <= state.limitTick ? powerOf2(state.layout.sequenceBits) - state.sequence : 0;
}

/** Passes over `count` ids of the present tick, at most `leftOfTick`. It keeps invariants 1 and 3. */
export function pass(state: GeneratorState, count: number): void {
  state.isUntouched = false;
  state.sequence += count;
  if (state.sequence === powerOf2(state.layout.sequenceBits)) {
    state.tick++;
    state.sequence = 0;
  }
}

/** What the next id is composed of. */
export function nextParts(state: GeneratorState): SnowflakeParts {
  const { tick, extension, dataCenter, worker, sequence } = state;
  return { tick, extension, dataCenter, worker, sequence };
}

/** Makes up to `count` ids without another look at the clocks, as segments in ascending order. */
export function make(state: GeneratorState, count: number): readonly Segment[] {
  const made: Segment[] = [];
  for (let rest = count; rest > 0;) {
    const part = Math.min(rest, leftOfTick(state));
    if (part === 0) break;
    const base = bigintOf(composeHalves(state.layout, nextParts(state)));
    pass(state, part);
    made.push({ base, increment: 1, count: part });
    rest -= part;
  }
  return made;
}
