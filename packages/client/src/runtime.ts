import { uptime } from "node:os";
import { type Clock, elapsedClock, type Random, type Timers } from "@idmint/core";

/** The outside world of a client, except for the servers. Tests bring their own. */
export interface Runtime {
  readonly clock: Clock;
  readonly timers: Timers;
  /** Timers that do not keep the process alive. */
  readonly quietTimers: Timers;
  /** Milliseconds since 1970. May go back and jump. */
  readonly wallClock: () => number;
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
 * awaits an id while the server is away would end silently in the middle. The ticker of idle clients and what keeps their
 * leases do not.
 */
export function nodeRuntime(isBuildingSnapshot: () => boolean): Runtime {
  const pending = new Set<NodeJS.Timeout>();
  const timersOf = (isQuiet: boolean): Timers => ({
    after(delayMs, run) {
      const timer = setTimeout(() => {
        pending.delete(timer);
        run();
      }, delayMs);
      if (isQuiet) timer.unref();
      pending.add(timer);
      return () => {
        clearTimeout(timer);
        pending.delete(timer);
      };
    },
  });
  return {
    // A machine that was suspended with ids in memory finds them past their max_age.
    clock: elapsedClock({
      monotonicMs: () => performance.now(),
      wallMs: Date.now,
      uptimeMs: () => uptime() * 1_000,
    }),
    timers: timersOf(false),
    quietTimers: timersOf(true),
    wallClock: Date.now,
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
