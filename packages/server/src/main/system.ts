import { randomBytes } from "node:crypto";
import type { Clock, Random, Timers } from "@idmint/core";

/** What the services need of the machine; tests pass their own. */
export interface System {
  /** Monotonic. */
  readonly clock: Clock;
  readonly timers: Timers;
  /** Runs a function after the events of the present turn of the event loop were handled. */
  readonly afterTurn: (run: () => void) => void;
  /** For jitter only. */
  readonly random: Random;
  /** A text of 128 random bits. */
  readonly randomToken: () => string;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
}

export const realSystem: System = {
  clock: { now: () => performance.now() },
  timers: {
    after: (delayMs, run) => {
      const timer = setTimeout(run, delayMs);
      return () => clearTimeout(timer);
    },
  },
  afterTurn: (run) => {
    setImmediate(run);
  },
  random: Math.random,
  randomToken: () => randomBytes(16).toString("base64url"),
  wallClock: Date.now,
};
