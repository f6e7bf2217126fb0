import { setTimeout as pause } from "node:timers/promises";

/** How long to look, and how often. */
export interface UntilOptions {
  /** Default: 10,000 ms. */
  readonly withinMs?: number;
  /** Default: 20 ms. */
  readonly everyMs?: number;
}

/**
 * Asks again and again until the answer is something, and answers it; fails with the last answer or error when that
 * takes too long. Tests wait by this and never by the clock alone.
 */
export async function until<T>(
  what: string,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  { withinMs = 10_000, everyMs = 20 }: UntilOptions = {},
): Promise<T> {
  const end = performance.now() + withinMs;
  let failure: unknown;
  for (;;) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
      failure = undefined;
    } catch (thrown) {
      failure = thrown;
    }
    if (performance.now() > end) {
      throw new Error(`not within ${withinMs} ms: ${what}`, { cause: failure });
    }
    await pause(everyMs);
  }
}
