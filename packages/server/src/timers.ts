import type { Timers } from "@idmint/core";

/** Node runs what is to wait for longer at once. Callers may set deadlines of years, and no connection lives for 24 days. */
const LONGEST_MS = 2 ** 31 - 1;

/** The timers of Node. */
export const nodeTimers: Timers = {
  after: (delayMs, run) => {
    const timer = setTimeout(run, Math.min(delayMs, LONGEST_MS));
    return () => clearTimeout(timer);
  },
};
