import { IdmintError, type Timers } from "@idmint/core";
import { namesOn, type Tag, type TagStore } from "@idmint/core/server";
import { redisServerOf } from "@idmint/core/kinds";
import { within } from "../call.ts";
import type { Emit } from "../events.ts";
import type { Marks } from "./marks.ts";

/** Tags of one page of the list. */
const PAGE = 500;
/** Tags that are made ready; those beyond are made ready by their first call. */
const MAX_PRELOADED = 10_000;
/** Tags made ready at once. */
const PARALLEL = 8;
/** After so many failures in a row in one Redis server its tags are left to their first calls: it is not one tag's fault. */
const MAX_FAILURES_IN_A_ROW = 20;

export interface PreloadPorts {
  readonly store: Pick<TagStore, "listTags">;
  /** What counts a tag in Redis, or leases its worker ids there; undefined: nothing. */
  readonly counterOf: (tag: Tag) => { prepare(): Promise<void> } | undefined;
  readonly marks: Pick<Marks, "learn">;
  /** Whether this server is configured with a Redis server. Tags of others are made ready by servers that are. */
  readonly hasRedisServer: (name: string) => boolean;
  readonly timers: Timers;
  readonly storeTimeoutMs: number;
  readonly signal: AbortSignal;
  readonly emit: Emit;
}

/**
 * Makes Redis ready for all active tags that count there, so that the first call of each after Redis or the servers were
 * restarted need not. A convenience: what fails here is done by the first call, and one tag that fails holds up no other.
 * Never rejects.
 */
export async function preload(ports: PreloadPorts): Promise<void> {
  const { store, timers, storeTimeoutMs, signal, emit, hasRedisServer } = ports;
  const failures = new Failures();
  try {
    let afterName = "";
    for (let left = MAX_PRELOADED; left > 0 && !signal.aborted;) {
      const query = { afterName, prefix: "", showDeleted: false, limit: PAGE };
      const page = await within(() => store.listTags(query), storeTimeoutMs, timers);
      const here = page.tags.filter(({ kind, state }) => {
        const redisServer = redisServerOf(kind);
        return state === "ACTIVE" && redisServer !== undefined && hasRedisServer(redisServer);
      });
      const some = here.slice(0, left);
      await prepareAll(some, ports, failures);
      left -= some.length;
      const names = namesOn(page);
      afterName = names.at(-1) ?? "";
      if (names.length < PAGE) break;
    }
  } catch (thrown) {
    failures.first ??= IdmintError.from(thrown);
  }
  if (failures.first !== undefined) emit({ type: "redis-preload-failed", error: failures.first });
}

async function prepareAll(
  tags: readonly Tag[],
  { marks, counterOf, signal }: PreloadPorts,
  failures: Failures,
): Promise<void> {
  try {
    // One statement for all of them, where each would need one of its own.
    await marks.learn(tags.map(({ name: tag, generation }) => ({ tag, generation })));
  } catch {
    // Each tag says so itself.
  }
  const waiting = [...tags];
  const work = async (): Promise<void> => {
    for (let tag = waiting.pop(); tag !== undefined; tag = waiting.pop()) {
      const redisServer = redisServerOf(tag.kind) ?? "";
      if (signal.aborted) return;
      if (failures.areTooMany(redisServer)) continue;
      try {
        await counterOf(tag)?.prepare();
        failures.ended(redisServer);
      } catch (thrown) {
        failures.add(redisServer, IdmintError.from(thrown));
      }
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
}

/** What failed while tags were made ready. */
class Failures {
  first: IdmintError | undefined;
  readonly #inARow = new Map<string, number>();

  add(redisServer: string, error: IdmintError): void {
    this.first ??= error;
    this.#inARow.set(redisServer, (this.#inARow.get(redisServer) ?? 0) + 1);
  }

  ended(redisServer: string): void {
    this.#inARow.delete(redisServer);
  }

  areTooMany(redisServer: string): boolean {
    return (this.#inARow.get(redisServer) ?? 0) >= MAX_FAILURES_IN_A_ROW;
  }
}
