import { type SnowflakeLayout, tickAt, timeOf } from "./layout.ts";

/** How far a process came with the ids of one place: those that differ in tick and sequence alone. */
export interface Made<Maker> {
  readonly layout: SnowflakeLayout;
  /** The first tick of which it made none. */
  nextTick: number;
  /** What makes them now. */
  maker: Maker | undefined;
}

/**
 * How far a process came with its snowflakes, over all leases and generators of it. Pure state.
 *
 * INVARIANT: a place that is not remembered begins above all that was made of any place that was forgotten. So a bound of what is
 * remembered costs no repeat. Those with the oldest ids are forgotten first, so as a rule that time is over.
 */
export interface MadeTimes<Maker> {
  /** By the tag, and by all that ids are composed of beside tick and sequence. */
  readonly places: Map<string, Made<Maker>>;
  /** Most places that are kept, when some are forgotten, though nobody makes their ids. */
  readonly maxIdle: number;
  /** How many places there are when some are forgotten next. */
  most: number;
  /** Ids of forgotten places are of times before this one, milliseconds since 1970. */
  forgottenMs: number;
}

const MAX_IDLE = 10_000;

export function createMadeTimes<Maker>(maxIdle: number = MAX_IDLE): MadeTimes<Maker> {
  return { places: new Map(), maxIdle, most: 2 * maxIdle, forgottenMs: -Infinity };
}

/** What was made of a place. */
export function madeOf<Maker>(
  made: MadeTimes<Maker>,
  place: string,
  layout: SnowflakeLayout,
): Made<Maker> {
  const known = made.places.get(place);
  if (known !== undefined) return known;
  if (made.places.size >= made.most) forgetIdle(made);
  const nextTick = Math.max(0, tickAt(layout, made.forgottenMs + layout.timeUnitMs - 1));
  const its: Made<Maker> = { layout, nextTick, maker: undefined };
  made.places.set(place, its);
  return its;
}

function forgetIdle(made: MadeTimes<unknown>): void {
  const { places, maxIdle } = made;
  const idle = [...places]
    .filter(([, { maker }]) => maker === undefined)
    .map(([place, { layout, nextTick }]) => ({ place, untilMs: timeOf(layout, nextTick) }))
    .toSorted((a, b) => a.untilMs - b.untilMs);
  for (const { place, untilMs } of idle.slice(0, Math.max(0, idle.length - maxIdle))) {
    places.delete(place);
    made.forgottenMs = Math.max(made.forgottenMs, untilMs);
  }
  // Rarely enough to cost little, also when ids of all places are being made.
  made.most = 2 * Math.max(maxIdle, places.size);
}
