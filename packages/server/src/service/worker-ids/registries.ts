import { IdmintError, type Timers, type WorkerLeaseKey } from "@idmint/core";
import {
  isOfStore,
  type StoreCalls,
  storeCalls,
  storeWentBack,
  type WorkerRegistry,
} from "@idmint/core/server";
import { notConfigured, within } from "../call.ts";
import type { OnWentBack } from "../upstream/refusals.ts";
import { TokenGuard } from "./token-guard.ts";

/** The calls of a store, each of which settles in bounded time; after that its outcome is unknown. */
export function boundedCalls(store: StoreCalls, boundMs: number, timers: Timers): StoreCalls {
  return storeCalls((name, args) => within(() => store[name](...args), boundMs, timers));
}

/** Of a tag whose registry this server cannot reach; others may. */
export function unreachableRegistry(tag: string): WorkerRegistry {
  const refuse = async (): Promise<never> => {
    throw notConfigured(
      tag,
      "has its workers in Redis, and this server is not configured with redis.urls: set it, the same on all servers",
    );
  };
  return { leaseWorker: refuse, renewWorker: refuse, releaseWorker: refuse, listWorkers: refuse };
}

/**
 * The registry in the store, under its guard. `onWentBack` is told when the store went back for a tag: an answer shows a
 * token that is not above one that was answered before, or the store says so itself.
 */
export function guardedRegistry(registry: WorkerRegistry, onWentBack: OnWentBack): WorkerRegistry {
  const guard = new TokenGuard();
  const asked = async <T>(tag: string, ask: () => Promise<T>): Promise<T> => {
    try {
      return await ask();
    } catch (thrown) {
      if (thrown instanceof IdmintError && thrown.reason === "STORE_EPOCH_CHANGED") {
        const detail = thrown.metadata["detail"] ?? thrown.message;
        onWentBack(isOfStore(thrown) ? undefined : tag, detail);
      }
      throw thrown;
    }
  };
  const assertAbove = (key: WorkerLeaseKey, begun: number): void => {
    const seen = guard.admit(key, begun);
    if (seen === undefined) return;
    const detail = `worker id ${key.workerId} was answered token ${key.token}, and ${seen} was seen before`;
    onWentBack(key.tag, detail);
    throw storeWentBack(detail, key.tag);
  };
  return {
    leaseWorker: async (request) => {
      const begun = guard.begin();
      const lease = await asked(request.tag, () => registry.leaseWorker(request));
      // failpoint: lease-reserved
      assertAbove({ ...lease, tag: request.tag }, begun);
      return lease;
    },
    renewWorker: async (renewal) => {
      const begun = guard.begin();
      const renewed = await asked(renewal.tag, () => registry.renewWorker(renewal));
      // failpoint: renewal-reserved
      assertAbove({ ...renewal, token: renewed.token }, begun);
      return renewed;
    },
    releaseWorker: (key) => asked(key.tag, () => registry.releaseWorker(key)),
    listWorkers: (query) => registry.listWorkers(query),
  };
}
