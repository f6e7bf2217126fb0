import {
  type IssuingEffect,
  type IssuingState,
  sawIssuing,
  type StoreChanges,
  type Tag,
} from "@idmint/core/server";

/**
 * What a server learns of the store every second. Pure: the shell `poll.ts` has the clock and the store.
 *
 * A history is what the store's incarnation names: from one `idmint store accept` to the next. `present` is the history
 * this server works in, `left` those it worked in before.
 *
 * INVARIANTS
 * 1. Within a history the revision never goes down. A lower one means that the store went back.
 * 2. A history that was left never comes back. If it does, the store went back to before it was accepted.
 * 3. Both fence everything until a history begins that this process has not seen: nothing else lifts such a fence, since
 *    a store that went back looks healthy again as soon as enough was granted.
 */
export interface PollState {
  present: string | undefined;
  /** The history that an earlier life of this server worked in last. */
  readonly earlier: string | undefined;
  readonly left: Set<string>;
  since: bigint;
  /** Why nothing is issued until a new history begins; empty when there is no reason. */
  wentBack: string;
  /** What the store itself last said against granting. */
  fenced: string;
  /** What the store last said that an operator should do soon. */
  warning: string;
  /** Why the store takes no writes, as it last said; empty: it takes them. */
  refusesWrites: string;
  /** Since when polls fail; undefined when the last one was answered. */
  failingSince: number | undefined;
  /** Whether servers are stopped. */
  issuing: IssuingState;
}

export type PollEffect =
  | IssuingEffect
  | { readonly type: "changed"; readonly tags: readonly Tag[] }
  | { readonly type: "new-history"; readonly incarnation: string }
  | { readonly type: "fence-all"; readonly detail: string }
  | { readonly type: "unfence-all" }
  | { readonly type: "fence-tags"; readonly tags: readonly string[]; readonly detail: string }
  /** Another than `fence-tags`: a store with a row that cannot be read is not accepted either. */
  | { readonly type: "refuse-tag"; readonly tag: string; readonly detail: string }
  | { readonly type: "store-back"; readonly afterMs: number }
  | { readonly type: "store-lost" }
  | { readonly type: "poll-again" }
  | { readonly type: "store-warning"; readonly detail: string }
  | { readonly type: "store-warning-over" };

const LOST = "its row is missing, or has a lower version or floor than was seen";
const CHANGED = "its row was loaded from a dump, changed by hand, or rewritten by an ALTER TABLE";
/** Histories that are remembered as left; an operator makes one with every accept. */
const MAX_LEFT = 1_000;

/** What earlier lives of this server knew of the store's histories. */
export interface EarlierHistories {
  readonly present: string | undefined;
  readonly left: readonly string[];
}

export function createPollState(since: bigint, earlier?: EarlierHistories): PollState {
  return {
    present: undefined,
    earlier: earlier?.present,
    left: new Set(earlier?.left),
    since,
    wentBack: "",
    fenced: "",
    warning: "",
    refusesWrites: "",
    failingSince: undefined,
    issuing: [],
  };
}

/** Where the store was in an earlier life of this server. */
export interface KnownHistory {
  readonly incarnation: string;
  /** Changes after this one are told again. */
  readonly since: bigint;
  readonly issuing: IssuingState;
}

/** Goes on in the history that is known, before the store has answered. */
export function resumeHistory(
  state: PollState,
  { incarnation, since, issuing }: KnownHistory,
): void {
  state.present = incarnation;
  state.since = since;
  state.issuing = issuing;
}

/** The store answered. */
export function pollAnswered(state: PollState, changes: StoreChanges, now: number): PollEffect[] {
  const effects: PollEffect[] = [];
  if (state.failingSince !== undefined) {
    effects.push({ type: "store-back", afterMs: now - state.failingSince });
    state.failingSince = undefined;
  }
  let before = fenceOf(state);
  const isFirst = state.present === undefined && state.wentBack === "";
  if (isFirst && !state.left.has(changes.incarnation)) {
    const { earlier } = state;
    // The store was accepted while this server did not run.
    if (earlier !== undefined && earlier !== changes.incarnation) state.left.add(earlier);
    state.present = changes.incarnation;
    state.since = changes.revision;
  } else if (changes.incarnation !== state.present) {
    // Whoever enters a new history drops every fence with the old one.
    if (enterHistory(state, changes, effects)) before = "";
  } else if (changes.revision < state.since) {
    state.wentBack = `its revision is ${changes.revision}, and ${state.since} was seen before`;
  } else {
    takeChanges(state, changes, effects);
  }
  state.fenced = changes.fenced;
  state.refusesWrites = changes.refusesWrites ?? "";
  noteWarning(state, changes.warning ?? "", effects);
  const after = fenceOf(state);
  if (after !== "" && after !== before) effects.push({ type: "fence-all", detail: after });
  if (after === "" && before !== "") effects.push({ type: "unfence-all" });
  return withIssuing(state, changes, effects);
}

/**
 * A stop is obeyed before anything else, and a resumption when everything that was changed meanwhile is. Of a store that is
 * not the accepted one nothing is believed: it may be from before the stop.
 */
function withIssuing(
  state: PollState,
  { parts }: StoreChanges,
  effects: PollEffect[],
): PollEffect[] {
  if (fenceOf(state) !== "") return effects;
  const { state: issuing, effect } = sawIssuing(state.issuing, parts);
  state.issuing = issuing;
  if (effect === undefined) return effects;
  return effect.type === "resume-issuing" ? [...effects, effect] : [effect, ...effects];
}

/** It is told once, and again when its words change. */
function noteWarning(state: PollState, warning: string, effects: PollEffect[]): void {
  const before = state.warning;
  state.warning = warning;
  if (warning !== "" && warning !== before)
    effects.push({ type: "store-warning", detail: warning });
  if (before !== "" && warning === "") effects.push({ type: "store-warning-over" });
}

/** The store did not answer in time, or with an error. */
export function pollFailed(state: PollState, now: number): PollEffect[] {
  if (state.failingSince !== undefined) return [];
  state.failingSince = now;
  return [{ type: "store-lost" }];
}

/** Why nothing may be issued, in words; empty when all is well. */
export function fenceOf(state: PollState): string {
  return state.wentBack === "" ? state.fenced : state.wentBack;
}

/** False when it is one that was left. */
function enterHistory(state: PollState, changes: StoreChanges, effects: PollEffect[]): boolean {
  const { incarnation } = changes;
  if (state.left.has(incarnation)) {
    state.wentBack = "it is as it was before it was accepted";
    return false;
  }
  if (state.present !== undefined) state.left.add(state.present);
  const [oldest] = state.left;
  if (state.left.size > MAX_LEFT && oldest !== undefined) state.left.delete(oldest);
  state.present = incarnation;
  state.since = changes.revision;
  state.wentBack = "";
  effects.push({ type: "new-history", incarnation });
  return true;
}

function takeChanges(state: PollState, changes: StoreChanges, effects: PollEffect[]): void {
  const { changed, unreadable = [], more, behind, changedByHand = [], revision } = changes;
  if (changed.length > 0) effects.push({ type: "changed", tags: changed });
  // It may have been paused, or its ids advanced.
  for (const tag of unreadable) effects.push({ type: "refuse-tag", ...tag });
  const next = changes.next ?? changed.at(-1)?.revision;
  if (more && next !== undefined) {
    state.since = next;
    effects.push({ type: "poll-again" });
  } else {
    state.since = revision;
  }
  const lost = behind.filter((tag) => !changedByHand.includes(tag));
  if (lost.length > 0) effects.push({ type: "fence-tags", tags: lost, detail: LOST });
  if (changedByHand.length > 0) {
    effects.push({ type: "fence-tags", tags: changedByHand, detail: CHANGED });
  }
}
