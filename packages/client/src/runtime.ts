import type { Clock, Random, Timers } from "@idmint/core";

/** The outside world of a client, except for the servers. Tests bring their own. */
export interface Runtime {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  /** Runs a function after the current turn of the event loop. */
  readonly afterTurn: (run: () => void) => void;
  /** Runs a function again and again; the answer stops it. */
  readonly every: (periodMs: number, run: () => void) => () => void;
  /** Number of this process. */
  readonly processId: () => number;
  /** Whether a V8 startup snapshot of this process is being built. */
  readonly isBuildingSnapshot: () => boolean;
  /** Cancels all timers. */
  readonly close: () => void;
}

/**
 * Node's own. A timer of a waiting call keeps the process alive, as a call in flight does: without it a script that
 * awaits an id while the server is away would end silently in the middle. The ticker of idle clients does not.
 */
export function nodeRuntime(isBuildingSnapshot: () => boolean): Runtime {
  const pending = new Set<NodeJS.Timeout>();
  return {
    clock: { now: () => performance.now() },
    timers: {
      after(delayMs, run) {
        const timer = setTimeout(() => {
          pending.delete(timer);
          run();
        }, delayMs);
        pending.add(timer);
        return () => {
          clearTimeout(timer);
          pending.delete(timer);
        };
      },
    },
    random: Math.random,
    // Not a microtask, which would run before those who are woken together have asked again.
    afterTurn: (run) => void setImmediate(run),
    every(periodMs, run) {
      const timer = setInterval(run, periodMs);
      timer.unref();
      return () => {
        clearInterval(timer);
      };
    },
    processId: () => process.pid,
    isBuildingSnapshot,
    close() {
      for (const timer of pending) clearTimeout(timer);
      pending.clear();
    },
  };
}
