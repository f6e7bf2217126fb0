import { IdmintError, type Tag, type TagStore, type Timers } from "@idmint/core";
import { within } from "./call.ts";
import type { Emit } from "./events.ts";
import { shardOfKind } from "./redis-place.ts";

/** Tags of one page of the list. */
const PAGE = 500;
/** Tags that are made ready; those beyond are made ready by their first call. */
const MAX_PRELOADED = 10_000;
/** Tags made ready at once. */
const PARALLEL = 8;

export interface PreloadPorts {
  readonly store: Pick<TagStore, "listTags">;
  readonly counterOf: (tag: Tag) => { prepare(): Promise<void> };
  readonly timers: Timers;
  readonly storeTimeoutMs: number;
  readonly signal: AbortSignal;
  readonly emit: Emit;
}

/**
 * Makes Redis ready for all active tags that count there, so that the first call of each after Redis or the servers were
 * restarted need not. A convenience: what fails here is done by the first call. Never rejects.
 */
export async function preload(ports: PreloadPorts): Promise<void> {
  const { store, timers, storeTimeoutMs, signal, emit } = ports;
  try {
    let afterName = "";
    for (let left = MAX_PRELOADED; left > 0 && !signal.aborted;) {
      const query = { afterName, prefix: "", showDeleted: false, limit: PAGE };
      const tags = await within(() => store.listTags(query), storeTimeoutMs, timers);
      const inRedis = tags
        .filter(({ kind, state }) => state === "ACTIVE" && shardOfKind(kind) !== undefined)
        .slice(0, left);
      await prepareAll(inRedis, ports);
      left -= inRedis.length;
      afterName = tags.at(-1)?.name ?? "";
      if (tags.length < PAGE) break;
    }
  } catch (thrown) {
    emit({ type: "redis-preload-failed", error: IdmintError.from(thrown) });
  }
}

async function prepareAll(tags: readonly Tag[], ports: PreloadPorts): Promise<void> {
  const waiting = [...tags];
  const work = async (): Promise<void> => {
    for (let tag = waiting.pop(); tag !== undefined; tag = waiting.pop()) {
      if (ports.signal.aborted) return;
      await ports.counterOf(tag).prepare();
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
}
