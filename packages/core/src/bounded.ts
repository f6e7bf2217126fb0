import type { Timers } from "./ports.ts";

/**
 * What the work comes to, or what `late` makes of it once `boundMs` are over: a value, or an error that it throws. The work
 * itself goes on, and nobody hears how it ends.
 */
export function bounded<T, Late = never>(
  work: Promise<T>,
  boundMs: number,
  timers: Timers,
  late: () => Late,
): Promise<T | Late> {
  // Without a race: each of a server's requests to its store comes through here, and a race takes more promises.
  const { promise, resolve, reject } = Promise.withResolvers<T | Late>();
  const stopTimer = timers.after(boundMs, () => {
    try {
      resolve(late());
    } catch (thrown) {
      reject(thrown);
    }
  });
  const hear = async (): Promise<void> => {
    try {
      resolve(await work);
    } catch (thrown) {
      reject(thrown);
    }
    stopTimer();
  };
  void hear();
  return promise;
}
