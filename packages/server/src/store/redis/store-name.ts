import { setTimeout as pause } from "node:timers/promises";

/** The store that a server belongs to; undefined before it was heard. */
export type StoreId = () => string | undefined;

/** Between two looks whether the store was heard. */
const RETRY_MS = 250;

/**
 * What servers of one store call something that they share in a Redis.
 *
 * INVARIANT: servers of two stores in one Redis elect nobody together, wake nobody of the other store, and deliver none of its
 * alarms.
 */
export function nameInRedis(name: string, storeId: string): string {
  return `${name}:${storeId}`;
}

/** The id, as soon as it is known. Rejects when `signal` aborts. */
export async function knownStoreId(storeId: StoreId, signal: AbortSignal): Promise<string> {
  for (;;) {
    const id = storeId();
    if (id !== undefined) return id;
    await pause(RETRY_MS, undefined, { signal });
  }
}
