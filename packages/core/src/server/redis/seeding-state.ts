import type { RedisDoubt, RedisSeeded } from "./ports.ts";

/** How long a new start of Redis that another server seems to be making is waited for: so often, each so long at most. */
const MAX_WAITS = 3;
const WAIT_MS = 50;
/** Doubts one round trip may clear up; more, and it is refused, since Redis does not come to rest. */
const MAX_STEPS = 12;
const RESTLESS = "Redis is given one new start after the other";
/** A tag that was told to move, and did not for so long, may count here again: the move has failed. */
export const MOVE_FAILED_AFTER_MS = 10_000;

/** How far beyond the present second an accept puts the generation of a tag: servers' clocks may have been ahead. */
export const GENERATIONS_AHEAD = 1_000n;

/**
 * The generation of a tag in an accepted store: another one than any that the lost history gave out, which counted from the
 * present second or in steps of one. Redis may still have one of those, and must not take what lies below the new floor, the gap
 * with it, for ids of its own.
 */
export function acceptedGeneration(generation: bigint, seconds: bigint): bigint {
  return (generation > seconds ? generation : seconds) + GENERATIONS_AHEAD;
}

/** Where a tag counts, as its row in the RDBMS has it. */
export interface CountingPlace {
  /** Name of the Redis server. */
  readonly redisServer: string;
  readonly generation: bigint;
}

/** What a server does about a doubt. */
type SeedingStep =
  /** Ask the tag's row where it counts and under which generation, then `placeRead`. */
  | { readonly type: "read-place" }
  /** Ask Redis again, after a random part of so long at most. */
  | { readonly type: "ask-again"; readonly withinMs: number }
  /**
   * Raise the tag's bound in the RDBMS with a new generation, ask its row whether it still counts here, seed that
   * generation once, and pass the answer to `seedAnswered`.
   */
  | { readonly type: "re-seed"; readonly doubt: RedisDoubt }
  /** The tag counts in another Redis server now: ask that one. */
  | { readonly type: "elsewhere"; readonly redisServer: string }
  /** Refuse for now. */
  | { readonly type: "refuse"; readonly why: string };

/**
 * How one server comes to agree with Redis and the RDBMS on the generation of one tag, within one round trip.
 *
 * INVARIANTS
 * 1. A generation is seeded at most once, by the server that the RDBMS gave it to; so no range of ids is started twice.
 *    After a seed whose outcome is unknown, Redis is asked anew, and what it does not have gets a further generation.
 * 2. A server issues under a generation that it seeded itself, or that both Redis and the row had: a Redis that is
 *    behind the row is never believed, since a newer one may have issued higher ids elsewhere.
 * 3. A higher generation has only higher ids, so the highest id seen holds across generations.
 */
export interface SeedingState {
  /** Issue under this one. */
  readonly generation: bigint;
  readonly steps: number;
  readonly waits: number;
  /** The doubt that the row is read for. */
  readonly doubt: RedisDoubt | undefined;
}

/** A round trip begins, under the generation known so far. */
export function startSeeding(generation: bigint): SeedingState {
  return { generation, steps: 0, waits: 0, doubt: undefined };
}

interface Next {
  readonly state: SeedingState;
  readonly step: SeedingStep;
}

/** Redis answered a doubt. */
export function doubted(old: SeedingState, doubt: RedisDoubt): Next {
  const state = { ...old, steps: old.steps + 1, doubt };
  if (state.steps > MAX_STEPS) {
    return { state, step: { type: "refuse", why: RESTLESS } };
  }
  switch (doubt.status) {
    case "missing":
    case "restarted":
    case "behind":
      return { state, step: { type: "re-seed", doubt } };
    case "other-generation":
      if (doubt.generation < state.generation) return awaitSeed(state, doubt);
      return { state, step: { type: "read-place" } };
    case "moved":
      return { state, step: { type: "read-place" } };
    default:
      return doubt satisfies never;
  }
}

/**
 * Somebody was answered under a higher generation than the one known here, so its ids are higher: what Redis may have of the
 * lower one is not asked for, or order would be lost.
 */
export function outdated(old: SeedingState, newest: bigint): Next {
  const doubt: RedisDoubt = { status: "behind", generation: old.generation };
  const state = { ...old, generation: newest, steps: old.steps + 1, doubt };
  if (state.steps > MAX_STEPS) return { state, step: { type: "refuse", why: RESTLESS } };
  return { state, step: { type: "read-place" } };
}

/** The row was read, as `read-place` said. `redisServer`: the one that doubted. */
export function placeRead(state: SeedingState, redisServer: string, place: CountingPlace): Next {
  if (place.redisServer !== redisServer) {
    const there = { ...state, generation: place.generation, waits: 0 };
    return { state: there, step: { type: "elsewhere", redisServer: place.redisServer } };
  }
  const { doubt } = state;
  if (doubt?.status === "moved") {
    if (doubt.agoMs < MOVE_FAILED_AFTER_MS) {
      return { state, step: { type: "refuse", why: "the tag is being moved" } };
    }
    return { state, step: { type: "re-seed", doubt } };
  }
  if (doubt?.status === "behind") {
    // The row may have lost the generation that somebody was answered under.
    if (place.generation < state.generation) return { state, step: { type: "re-seed", doubt } };
    const present = { ...state, generation: place.generation };
    return { state: present, step: { type: "ask-again", withinMs: 0 } };
  }
  if (doubt?.status !== "other-generation") {
    return { state, step: { type: "ask-again", withinMs: WAIT_MS } };
  }
  const next = { ...state, generation: place.generation };
  if (place.generation === doubt.generation) {
    return { state: next, step: { type: "ask-again", withinMs: 0 } };
  }
  return awaitSeed(next, doubt);
}

/** Redis answered the seed of `generation`. */
export function seedAnswered(state: SeedingState, generation: bigint, answer: RedisSeeded): Next {
  if (answer.status !== "seeded") return doubted({ ...state, generation }, answer);
  return {
    state: { ...state, generation, waits: 0 },
    step: { type: "ask-again", withinMs: 0 },
  };
}

/** Redis is behind the row: another server is about to seed, or died before it could. */
function awaitSeed(state: SeedingState, doubt: RedisDoubt): Next {
  if (state.waits >= MAX_WAITS) return { state, step: { type: "re-seed", doubt } };
  const waited = { ...state, waits: state.waits + 1 };
  return { state: waited, step: { type: "ask-again", withinMs: WAIT_MS } };
}
