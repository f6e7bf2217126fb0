/** By when a change is in effect, as servers answer it. */
export interface EffectAnswer {
  readonly effectiveTime?: string | null | undefined;
  readonly laggingNodeCount: number;
  readonly inEffect?: boolean;
}

/** What to tell of a change. */
export type EffectView =
  | { readonly state: "done" }
  /** Servers have not confirmed, or callers may use what they hold: until then at most. */
  | { readonly state: "counting"; readonly leftMs: number; readonly lagging: number }
  /** The time has come, and the server has not said so yet. */
  | { readonly state: "due"; readonly lagging: number }
  /** Nobody knows: a server that is not heard of never stops by itself, or the store does not answer. */
  | { readonly state: "unknown"; readonly lagging: number };

/**
 * INVARIANT: a change is told to be in effect only when the server says so. The time left is shown by the server's clock:
 * `aheadMs` is how far that one is ahead of this machine's.
 */
export function effectView(answer: EffectAnswer, nowMs: number, aheadMs: number): EffectView {
  const { effectiveTime, inEffect = false, laggingNodeCount: lagging } = answer;
  if (inEffect) return { state: "done" };
  const atMs = Date.parse(effectiveTime ?? "");
  if (Number.isNaN(atMs)) return { state: "unknown", lagging };
  const leftMs = atMs - (nowMs + aheadMs);
  return leftMs > 0 ? { state: "counting", leftMs, lagging } : { state: "due", lagging };
}
