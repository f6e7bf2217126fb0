import type { Timers } from "./ports.ts";

/**
 * What the work comes to, or what `late` makes of it once `boundMs` are over: a value, or an error that it throws. The work
 * itself goes on, and nobody hears how it ends.
 */
export async function bounded<T, Late = never>(
  work: Promise<T>,
  boundMs: number,
  timers: Timers,
  late: () => Late,
): Promise<T | Late> {
  const over = Promise.withResolvers<void>();
  const stopTimer = timers.after(boundMs, over.resolve);
  try {
    return await Promise.race([work, over.promise.then(late)]);
  } finally {
    stopTimer();
  }
}
