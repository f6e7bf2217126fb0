import { randomBytes } from "node:crypto";
import type { Clock, Timers } from "@idmint/core";

/** The process's monotonic clock. */
export const systemClock: Clock = { now: () => performance.now() };

export const systemTimers: Timers = {
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Runs a function after the events of the present turn of the event loop were handled. */
export function afterTurn(run: () => void): void {
  setImmediate(run);
}

/** A text of 128 random bits. */
export function randomToken(): string {
  return randomBytes(16).toString("base64url");
}

/** Milliseconds since 1970. */
export function wallClock(): number {
  return Date.now();
}
