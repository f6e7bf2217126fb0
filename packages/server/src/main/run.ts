import type { Serving } from "./running.ts";

/** What a run needs of the process; a test passes its own. */
export interface SignalSource {
  on(signal: "SIGTERM" | "SIGINT", listener: () => void): unknown;
  off(signal: "SIGTERM" | "SIGINT", listener: () => void): unknown;
  exit(code: number): void;
}

/** The code of a process that was told twice to stop, and did not wait. */
export const FORCED_EXIT_CODE = 1;

/**
 * Waits for SIGTERM or SIGINT, stops the server, and fulfils with the exit code, 0. A second signal ends the process at
 * once with FORCED_EXIT_CODE: unused ids become a gap.
 */
export async function runUntilSignal(
  server: Pick<Serving, "close" | "kill">,
  source: SignalSource = process,
): Promise<number> {
  const first = Promise.withResolvers<void>();
  let isStopping = false;
  const onSignal = (): void => {
    if (isStopping) {
      server.kill?.();
      source.exit(FORCED_EXIT_CODE);
    }
    isStopping = true;
    first.resolve();
  };
  source.on("SIGTERM", onSignal);
  source.on("SIGINT", onSignal);
  try {
    await first.promise;
    await server.close();
  } finally {
    source.off("SIGTERM", onSignal);
    source.off("SIGINT", onSignal);
  }
  return 0;
}
