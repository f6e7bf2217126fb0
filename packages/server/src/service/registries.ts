import type { Timers, WorkerRegistry } from "@idmint/core";
import { storeUnavailable, within } from "./call.ts";

/** A registry each of whose calls settles in bounded time; after that its outcome is unknown. */
export function boundedRegistry(
  registry: WorkerRegistry,
  boundMs: number,
  timers: Timers,
): WorkerRegistry {
  return {
    leaseWorker: (request) => within(() => registry.leaseWorker(request), boundMs, timers),
    renewWorker: (renewal) => within(() => registry.renewWorker(renewal), boundMs, timers),
    releaseWorker: (key) => within(() => registry.releaseWorker(key), boundMs, timers),
    listWorkers: (query) => within(() => registry.listWorkers(query), boundMs, timers),
  };
}

/** Of a tag whose registry this server cannot reach; others may. */
export function unreachableRegistry(tag: string): WorkerRegistry {
  const refuse = async (): Promise<never> => {
    throw storeUnavailable(
      `this server is not configured with redis.urls, where tag "${tag}" has its workers; ask another server`,
    );
  };
  return { leaseWorker: refuse, renewWorker: refuse, releaseWorker: refuse, listWorkers: refuse };
}
