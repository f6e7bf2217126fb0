import { AsyncLocalStorage } from "node:async_hooks";

/**
 * Runs a function as if nobody had asked for it: in the asynchronous context in which the SDK was loaded. Connections, timers and
 * background work live longer than the request that began them. In its context they would keep all that is stored there, and be
 * traced below it.
 */
export const outside: <R>(run: () => R) => R = AsyncLocalStorage.snapshot();
