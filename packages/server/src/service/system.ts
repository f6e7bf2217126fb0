import type { Clock, Random, Timers } from "@idmint/core";

/** What the services need of the machine; tests pass their own. */
export interface System {
  /** Monotonic, and counts time in which the machine was suspended. */
  readonly clock: Clock;
  readonly timers: Timers;
  /** Runs a function after the events of the present turn of the event loop were handled. */
  readonly afterTurn: (run: () => void) => void;
  /** Time since the start in which the event loop had nothing to do. */
  readonly idleMs: () => number;
  /** For jitter only. */
  readonly random: Random;
  /** A text of 128 random bits. */
  readonly randomToken: () => string;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
}
