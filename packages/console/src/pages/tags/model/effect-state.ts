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

/** What is left, in the two largest of hours, minutes and seconds: 10m 4s. It is never told to be less than it is. */
export function leftText(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  const parts = [
    [Math.floor(seconds / 3_600), "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  const shown = parts.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${count}${unit}`).join(" ");
}
