import type { Clock, Random, Timers, UuidLibrary } from "@idmint/core";

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
  /** That many random bytes, of a source fit for secrets. */
  readonly randomBytes: (count: number) => Uint8Array;
  /** A text of 128 random bits. */
  readonly randomToken: () => string;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  /** Makes those UUIDs that idmint does not make itself, with randomness and a clock of its own. */
  readonly uuids: UuidLibrary;
  /** Name of the machine, and number of this process on it. */
  readonly process: { readonly hostname: string; readonly pid: number };
}
