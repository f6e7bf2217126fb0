export interface HeldOptions {
  /** Share of the time that refusals may take. */
  readonly share: number;
  /** Longest that one is held. */
  readonly maxMs: number;
  readonly maxHeld: number;
}

/**
 * Refusals that are held back, since an answer at once is what a storm of callers lives on: most callers call again as soon
 * as they are answered, and a refusal costs nearly as much as an answer. Pure.
 *
 * INVARIANTS
 * 1. Refusals take `share` of the time, while what is held may wait for it.
 * 2. Each is answered at the time that it is to be answered by, or sooner, and each once.
 * 3. At most `maxHeld` are held. One more sends the earliest on.
 */
export interface HeldState<Item> {
  readonly options: HeldOptions;
  /** By the number of the time slot in which they are due, modulo the number of slots. */
  readonly slots: Item[][];
  count: number;
  /** No slot before this one holds any. */
  first: number;
  /** Refusals that may be answered now. */
  allowance: number;
  /** From 0 to 1, spread evenly. */
  jitter: number;
  at: number;
}

/** How much earlier than it has to be a refusal may be answered. */
export const HELD_SLOT_MS = 25;
/** What may be answered at once after a quiet time: as much as the share of so long allows. */
const SAVED_MS = 100;
/** Multiples of it lie evenly between whole numbers. */
const GOLDEN = (Math.sqrt(5) - 1) / 2;

export function createHeldState<Item>(options: HeldOptions): HeldState<Item> {
  const slots = Math.ceil(options.maxMs / HELD_SLOT_MS) + 2;
  return {
    options,
    slots: Array.from({ length: slots }, () => []),
    count: 0,
    first: 0,
    allowance: 0,
    jitter: 0,
    at: -Infinity,
  };
}

/** Whether a refusal may be answered at once; it counts then. `costMs`: what one takes. */
export function mayAnswerNow<Item>(state: HeldState<Item>, now: number, costMs: number): boolean {
  accrue(state, now, costMs, state.options.share);
  if (state.count > 0 || state.allowance < 1) return false;
  state.allowance--;
  return true;
}

/**
 * Holds a refusal that is to be answered by `until`. Answers one that has to go on in its place, if any. Callers that came
 * together are not sent on together, since they would come back together.
 */
export function hold<Item>(
  state: HeldState<Item>,
  item: Item,
  until: number,
  now: number,
): Item | undefined {
  const { slots, options } = state;
  const present = slotOf(now);
  // Invariant 2: nothing is held beyond the slots that there are.
  state.jitter = (state.jitter + GOLDEN) % 1;
  const latest = now + options.maxMs * (1 - state.jitter / 2);
  const slot = Math.max(present, slotOf(Math.min(until, latest)));
  state.first = state.count === 0 ? slot : Math.min(state.first, slot);
  slots[slot % slots.length]?.push(item);
  state.count++;
  // Invariant 3.
  return state.count > options.maxHeld ? takeFirst(state) : undefined;
}

/**
 * What is to be answered now: all that is due, and as many more as may be, the earliest first. `share`: of the time that
 * refusals may take for once.
 */
export function released<Item>(
  state: HeldState<Item>,
  now: number,
  costMs: number,
  share: number = state.options.share,
): Item[] {
  accrue(state, now, costMs, share);
  const items: Item[] = [];
  const present = slotOf(now);
  while (state.count > 0) {
    seekFirst(state);
    // Invariant 1, and invariant 2 where they disagree.
    if (state.allowance < 1 && state.first > present) break;
    const item = takeFirst(state);
    if (item === undefined) break;
    items.push(item);
    state.allowance = Math.max(0, state.allowance - 1);
  }
  return items;
}

/** All of them, since nobody waits any longer. */
export function releaseAll<Item>(state: HeldState<Item>): Item[] {
  const items = state.slots.flat();
  for (const slot of state.slots) slot.length = 0;
  state.count = 0;
  return items;
}

function accrue<Item>(state: HeldState<Item>, now: number, costMs: number, share: number): void {
  const perMs = share / Math.max(costMs, 1e-3);
  const passedMs = Math.min(SAVED_MS, Math.max(0, now - state.at));
  const most = share === 0 ? 0 : Math.max(1, SAVED_MS * perMs);
  state.allowance = Math.min(most, state.allowance + passedMs * perMs);
  state.at = Math.max(state.at, now);
}

function takeFirst<Item>(state: HeldState<Item>): Item | undefined {
  seekFirst(state);
  const item = state.slots[state.first % state.slots.length]?.pop();
  if (item !== undefined) state.count--;
  return item;
}

/** Moves on to the first slot that holds any. */
function seekFirst<Item>(state: HeldState<Item>): void {
  const { slots } = state;
  for (let looked = 0; looked < slots.length; looked++) {
    if ((slots[state.first % slots.length]?.length ?? 0) > 0) return;
    state.first++;
  }
}

function slotOf(time: number): number {
  return Math.floor(time / HELD_SLOT_MS);
}
