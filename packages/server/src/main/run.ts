import type { Clock } from "@idmint/core";
import type { Serving } from "./running.ts";
import type { Script } from "./script.ts";
import { realSystem } from "./system.ts";

/** SIGHUP comes when the terminal is closed, or when the process that owned it has died. */
const SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/** What a run needs of the process; a test passes its own. */
export interface SignalSource {
  on(signal: (typeof SIGNALS)[number], listener: () => void): unknown;
  off(signal: (typeof SIGNALS)[number], listener: () => void): unknown;
  exit(code: number): void;
}

/** The exit code of a process that was told to stop a second time and did not wait. */
export const FORCED_EXIT_CODE = 1;

/** Ctrl-C reaches every process of a terminal, and package managers pass it on: one press arrives up to three times. */
const SAME_SIGNAL_MS = 1_000;

/**
 * Waits for SIGTERM, SIGINT, SIGHUP or the end of the script that started the server. Then stops the server, and
 * fulfils with the exit code, 0. A second signal ends `drain_delay`; where that is over, it ends the process at once with
 * FORCED_EXIT_CODE, and unused ids become a gap. Under a script, signals within one second count as one.
 */
export async function runUntilSignal(
  server: Pick<Serving, "close" | "kill"> & Partial<Pick<Serving, "hurry">>,
  script?: Script,
  source: SignalSource = process,
  clock: Clock = realSystem.clock,
): Promise<number> {
  const first = Promise.withResolvers<void>();
  let stoppingSince: number | undefined;
  const stop = (): void => {
    stoppingSince ??= clock.now();
    first.resolve();
  };
  const onSignal = (): void => {
    const isSame =
      stoppingSince !== undefined &&
      script !== undefined &&
      clock.now() - stoppingSince < SAME_SIGNAL_MS;
    if (isSame) return;
    if (stoppingSince !== undefined && server.hurry?.() !== true) {
      server.kill?.();
      source.exit(FORCED_EXIT_CODE);
    }
    stop();
  };
  for (const signal of SIGNALS) source.on(signal, onSignal);
  void script?.ended.then(stop);
  try {
    await first.promise;
    await server.close();
  } finally {
    script?.stop();
    for (const signal of SIGNALS) source.off(signal, onSignal);
  }
  return 0;
}
