import type { Timers } from "@idmint/core";

/** The timers of Node. */
export const nodeTimers: Timers = {
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};
