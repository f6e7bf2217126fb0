/**
 * Whether this server takes calls, as operators and its end have it. Pure; `drain.ts` is the shell.
 *
 * INVARIANTS
 * 1. From the moment it is told, a server takes no call. What it holds is given back when the calls that it took before have
 *    ended, or `drain_time` is over, and not earlier.
 * 2. What ends under one drain says nothing of the next one.
 * 3. A server that stops goes on stopping, whatever operators say.
 */
export interface DrainState {
  /** `leaving`: calls that came before still run. `resting`: nothing is held. */
  readonly phase: "serving" | "leaving" | "resting" | "stopping";
  /** Number of the present drain. */
  readonly round: number;
}

/** Why a server takes no calls. */
export type DrainCause = "stopping" | "drained";

export type DrainEvent =
  /** What the store says; comes with every poll. */
  | { readonly type: "told"; readonly isDraining: boolean }
  /** Under the drain of that number: the calls have ended, or their time is over. */
  | { readonly type: "idle"; readonly round: number }
  | { readonly type: "stop" };

export type DrainEffect =
  /** Refuse calls, say so, and wait for those that run. */
  | { readonly type: "leave"; readonly round: number }
  /** Give back what is held. */
  | { readonly type: "rest" }
  /** Take calls again. */
  | { readonly type: "return"; readonly hasRested: boolean };

export const SERVING: DrainState = { phase: "serving", round: 0 };

export function causeOf({ phase }: DrainState): DrainCause | undefined {
  if (phase === "serving") return undefined;
  return phase === "stopping" ? "stopping" : "drained";
}

export function onDrainEvent(
  state: DrainState,
  event: DrainEvent,
): readonly [DrainState, readonly DrainEffect[]] {
  const { phase, round } = state;
  // Invariant 3.
  if (phase === "stopping") return [state, []];
  if (event.type === "stop") return [{ phase: "stopping", round }, []];
  if (event.type === "idle") {
    // Invariants 1 and 2.
    if (phase !== "leaving" || event.round !== round) return [state, []];
    return [{ phase: "resting", round }, [{ type: "rest" }]];
  }
  const isServing = phase === "serving";
  if (event.isDraining !== isServing) return [state, []];
  if (!isServing) {
    return [{ phase: "serving", round }, [{ type: "return", hasRested: phase === "resting" }]];
  }
  return [{ phase: "leaving", round: round + 1 }, [{ type: "leave", round: round + 1 }]];
}
