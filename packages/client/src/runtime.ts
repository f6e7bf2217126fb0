import { uptime } from "node:os";
import { performance } from "node:perf_hooks";
import { type Clock, elapsedClock, type Random, type Timers, type TimeSources } from "@idmint/core";
import { type LocalTextMakers, localTextMakers } from "./kinds/local-text-makers.ts";
import { outside } from "./process/outside.ts";

/** The outside world of a client, except for the servers. Tests bring their own. */
export interface Runtime {
  readonly clock: Clock;
  /** Has a function run whenever the wall clock goes ahead by a time that `clock` does not count. */
  readonly onLeap: (run: () => void) => void;
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
  /** What makes UUIDs and ObjectIds. */
  readonly textMakers: () => LocalTextMakers;
  /** Number of this process. */
  readonly processId: () => number;
  /** Whether a V8 startup snapshot of this process is being built. */
  readonly isBuildingSnapshot: () => boolean;
  /** Cancels all timers. */
  readonly close: () => void;
}

// As they are when the SDK is loaded. Fake timers of a test stand in for the globals for a while, and a client may be made then.
const { clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } = globalThis;
const CLOCKS: TimeSources = {
  monotonicMs: performance.now.bind(performance),
  wallMs: Date.now,
  uptimeMs: () => uptime() * 1_000,
};

/**
 * Node's own. A timer of a waiting call keeps the process alive, as a call in flight does: without it a script that
 * awaits an id while the server is away would end silently in the middle. The ticker of idle clients and what keeps their
 * leases do not.
 */
export function nodeRuntime(
  isBuildingSnapshot: () => boolean,
  clocks: TimeSources = CLOCKS,
): Runtime {
  let leapt: (() => void) | undefined;
  const pending = new Set<NodeJS.Timeout>();
  const timersOf = (isQuiet: boolean): Timers => ({
    after(delayMs, run) {
      const due = (): void => {
        pending.delete(timer);
        run();
      };
      const timer = outside(() => setTimeout(due, delayMs));
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
    clock: elapsedClock({ ...clocks, onLeap: () => leapt?.() }),
    onLeap(run) {
      leapt = run;
    },
    timers: timersOf(false),
    quietTimers: timersOf(true),
    wallClock: clocks.wallMs,
    random: Math.random,
    // Not a microtask, which would run before those who are woken together have asked again. In the context of who asked.
    afterTurn: (run) => void setImmediate(run),
    every(periodMs, run) {
      const timer = outside(() => setInterval(run, periodMs));
      timer.unref();
      return () => {
        clearInterval(timer);
      };
    },
    textMakers: localTextMakers,
    processId: () => process.pid,
    isBuildingSnapshot,
    close() {
      for (const timer of pending) clearTimeout(timer);
      pending.clear();
    },
  };
}
