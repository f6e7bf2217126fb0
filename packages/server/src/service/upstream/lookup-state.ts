import type { Tag } from "@idmint/core/server";

/**
 * Which unknown tag names are asked of the store, and when. Pure: the shell `lookup.ts` has the promises and the store.
 *
 * INVARIANTS
 * 1. At most one batch is in flight, and batches start at least `pauseMs` apart: however many unknown names a storm
 *    brings, the store sees 1000 / pauseMs statements a second.
 * 2. A name is in `queued` or in `inFlight`, never in both and never twice.
 * 3. `queued` holds at most `maxQueued` names, `absent` at most `maxAbsent`.
 * 4. A name whose record was seen meanwhile (a change made here, or shown by the poll) leaves the batch: the answer
 *    under way may be from before that change, so it says nothing about this name, neither a record nor an absence.
 */
export interface LookupState {
  readonly options: LookupOptions;
  readonly queued: Set<string>;
  inFlight: Set<string> | undefined;
  /** Names the store did not have, and until when that is believed. The oldest come first. */
  readonly absent: Map<string, number>;
  nextAt: number;
}

export interface LookupOptions {
  readonly maxBatch: number;
  readonly maxQueued: number;
  readonly maxAbsent: number;
  readonly pauseMs: number;
  /** How long an absence is believed, in milliseconds. The poll shortens it when the tag is made. */
  readonly absentForMs: number;
}

export const LOOKUP_OPTIONS: LookupOptions = {
  maxBatch: 1_000,
  maxQueued: 10_000,
  maxAbsent: 10_000,
  pauseMs: 50,
  absentForMs: 5_000,
};

export function createLookupState(options: LookupOptions): LookupState {
  return { options, queued: new Set(), inFlight: undefined, absent: new Map(), nextAt: 0 };
}

/** Someone asks for a name. `absent`: known not to exist; `full`: too many names wait; otherwise it is under way. */
export function wish(state: LookupState, name: string, now: number): "absent" | "full" | "asked" {
  const until = state.absent.get(name);
  if (until !== undefined) {
    if (now < until) return "absent";
    state.absent.delete(name);
  }
  if (state.inFlight?.has(name) === true || state.queued.has(name)) return "asked";
  if (state.queued.size >= state.options.maxQueued) return "full";
  state.queued.add(name);
  return "asked";
}

/** The next batch to send now, or when to ask again, or undefined when there is nothing to do. */
export function nextBatch(
  state: LookupState,
  now: number,
): { readonly names: readonly string[] } | { readonly at: number } | undefined {
  if (state.inFlight !== undefined || state.queued.size === 0) return undefined;
  if (now < state.nextAt) return { at: state.nextAt };
  const names: string[] = [];
  for (const name of state.queued) {
    if (names.length === state.options.maxBatch) break;
    names.push(name);
    state.queued.delete(name);
  }
  state.inFlight = new Set(names);
  state.nextAt = now + state.options.pauseMs;
  return { names };
}

/** The store answered. Tells its records of the names that are still in flight, and which of those names are absent. */
export function answered<T extends Pick<Tag, "name" | "state">>(
  state: LookupState,
  records: readonly T[],
  now: number,
): { readonly admitted: readonly T[]; readonly absent: readonly string[] } {
  const inFlight = state.inFlight ?? new Set<string>();
  const admitted = records.filter(({ name }) => inFlight.has(name));
  const alive = new Set(admitted.filter((tag) => tag.state !== "DELETED").map((tag) => tag.name));
  const absent = [...inFlight].filter((name) => !alive.has(name));
  for (const name of absent) believeAbsent(state, name, now);
  state.inFlight = undefined;
  return { admitted, absent };
}

/** The store did not answer: nothing is known. Answers the names that were asked for. */
export function batchFailed(state: LookupState): readonly string[] {
  const names = [...(state.inFlight ?? [])];
  state.inFlight = undefined;
  return names;
}

/** Nobody waits for this name any more. */
export function unwish(state: LookupState, name: string): void {
  state.queued.delete(name);
}

/** A record of the tag was seen elsewhere: nothing holds that was believed or asked before. */
export function overtaken(state: LookupState, name: string): void {
  state.absent.delete(name);
  state.queued.delete(name);
  state.inFlight?.delete(name);
}

/** The tag is known not to exist any more. */
export function believeAbsent(state: LookupState, name: string, now: number): void {
  state.absent.delete(name);
  state.absent.set(name, now + state.options.absentForMs);
  if (state.absent.size <= state.options.maxAbsent) return;
  const [oldest] = state.absent.keys();
  if (oldest !== undefined) state.absent.delete(oldest);
}

/** Another history of the store: nothing that was believed holds. */
export function forgetAll(state: LookupState): void {
  state.absent.clear();
}
