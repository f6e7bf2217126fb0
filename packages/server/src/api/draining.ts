import { IdmintError } from "@idmint/core";
import type { DrainCause } from "../service/drain-state.ts";

/** The server stops, or an operator drained it: another one answers. */
export function draining(cause: DrainCause): IdmintError {
  return cause === "stopping"
    ? new IdmintError("DRAINING", "this server is stopping; call another server", {
        retryAfterMs: 100,
      })
    : new IdmintError("DRAINING", "an operator drained this server; call another server", {
        retryAfterMs: 1_000,
      });
}

/** Whether calls are refused for that, so that callers had better go. */
export function isDraining(thrown: unknown): boolean {
  return thrown instanceof IdmintError && thrown.reason === "DRAINING";
}
