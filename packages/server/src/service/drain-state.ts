/**
 * Whether this server takes calls, as operators and its end have it. Pure; `drain.ts` is the shell.
 *
 * INVARIANTS
 * 1. A server that takes no callers any more says so first, and still answers for `drain_delay`: whoever is in front of it
 *    notices meanwhile, and callers go before they are refused.
 * 2. From then on it takes no call. What it holds is given back when the calls that it took before have ended, or `drain_time`
 *    is over, and not earlier.
 * 3. What ends under one drain says nothing of the next one.
 * 4. A server that stops goes on stopping, whatever operators say. One that is on its way already does not begin anew.
 */
export interface DrainState {
  /** `unready`: it answers, and sends callers away. `leaving`: calls that came before still run. `resting`: nothing is held. */
  readonly phase: "serving" | "unready" | "leaving" | "resting" | "stopping";
  /** Number of the present drain. */
  readonly round: number;
  /** It was told to stop. */
  readonly isStopping: boolean;
}

/** Why a server takes no calls. */
export type DrainCause = "stopping" | "drained";

export type DrainEvent =
  /** What the store says; comes with every poll. */
  | { readonly type: "told"; readonly isDraining: boolean }
  /** Under the drain of that number: it has been unready for long enough. */
  | { readonly type: "delayed"; readonly round: number }
  /** Under the drain of that number: the calls have ended, or their time is over. */
  | { readonly type: "idle"; readonly round: number }
  | { readonly type: "stop" };

export type DrainEffect =
  /** Say that no callers are wanted, send those away that there are, and answer them until it is `delayed`. */
  | { readonly type: "announce"; readonly round: number }
  /** Refuse calls, say so, and wait for those that run. */
  | { readonly type: "leave"; readonly round: number }
  /** Give back what is held. */
  | { readonly type: "rest" }
  /** Refuse calls for good. */
  | { readonly type: "end" }
  /** Take calls again. */
  | { readonly type: "return"; readonly hasRested: boolean };

export const SERVING: DrainState = { phase: "serving", round: 0, isStopping: false };

/** Why callers are not wanted. */
export function leavingOf({ phase, isStopping }: DrainState): DrainCause | undefined {
  if (phase === "serving") return undefined;
  return isStopping ? "stopping" : "drained";
}

/** Why calls are refused. */
export function causeOf(state: DrainState): DrainCause | undefined {
  return state.phase === "unready" ? undefined : leavingOf(state);
}

export function onDrainEvent(
  state: DrainState,
  event: DrainEvent,
): readonly [DrainState, readonly DrainEffect[]] {
  if (event.type === "stop") return onStop(state);
  if (event.type === "told") return onTold(state, event.isDraining);
  const { phase, round, isStopping } = state;
  // Invariants 1 to 3.
  if (phase !== (event.type === "idle" ? "leaving" : "unready") || event.round !== round) {
    return [state, []];
  }
  if (event.type === "idle") return [{ ...state, phase: "resting" }, [{ type: "rest" }]];
  if (isStopping) return [{ ...state, phase: "stopping" }, [{ type: "end" }]];
  return [{ ...state, phase: "leaving" }, [{ type: "leave", round }]];
}

function onStop(state: DrainState): readonly [DrainState, readonly DrainEffect[]] {
  const { phase, round, isStopping } = state;
  // Invariant 4.
  if (isStopping) return [state, []];
  if (phase === "serving") return announced({ phase, round, isStopping: true });
  if (phase === "unready") return [{ phase, round, isStopping: true }, []];
  return [{ phase: "stopping", round, isStopping: true }, [{ type: "end" }]];
}

function onTold(
  state: DrainState,
  isDraining: boolean,
): readonly [DrainState, readonly DrainEffect[]] {
  const { phase } = state;
  const isServing = phase === "serving";
  // Invariant 4.
  if (state.isStopping || isDraining !== isServing) return [state, []];
  if (isServing) return announced(state);
  return [{ ...state, phase: "serving" }, [{ type: "return", hasRested: phase === "resting" }]];
}

function announced(state: DrainState): readonly [DrainState, readonly DrainEffect[]] {
  const round = state.round + 1;
  return [{ ...state, phase: "unready", round }, [{ type: "announce", round }]];
}
