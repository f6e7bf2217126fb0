import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";

/**
 * Runs a function as if nobody had asked for it: in the asynchronous context in which the SDK was loaded. Connections, timers and
 * background work live longer than the request that began them. In its context they would keep all that is stored there, and be
 * traced below it.
 */
export const outside: <R>(run: () => R) => R = AsyncLocalStorage.snapshot();

/** What runs functions in the present asynchronous context. `AsyncLocalStorage.snapshot` answers the same, many times slower. */
export function presentContext(): typeof outside {
  const present = new AsyncResource("idmint");
  return (run) => present.runInAsyncScope(run);
}
