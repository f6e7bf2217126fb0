import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { createSignals, type Listener, type RedisSource } from "@idmint/coordination";
import { knownStoreId, nameInRedis, type StoreId } from "./store-name.ts";

const TAGS_CHANGED = "tags-changed";
/** How long one wait lasts; the next one follows. */
const WAIT_MS = 3_600_000;
/** Between two tries to listen while Redis is not there. */
const RETRY_MS = 1_000;

/**
 * Tells other servers of the same store through one Redis that a tag was changed, and hears it from them. A signal says nothing of the
 * change, so one that is lost costs the time to the next poll, and two that meet are as good as one: however many
 * changes there are, one signal is on its way and one waits.
 */
export class TagSignals {
  readonly #self = randomUUID();
  readonly #signals;
  readonly #storeId: StoreId;
  readonly #closing = new AbortController();
  #isTelling = false;
  #hasMore = false;

  /** `source` may hold passwords; it is not shown. */
  constructor(source: RedisSource, storeId: StoreId) {
    this.#storeId = storeId;
    // One signal that waits to be heard is as good as many.
    this.#signals = createSignals({ redis: source, maxBuffered: 1 });
  }

  /** Tells all others; returns at once, and never fails. */
  tell(): void {
    this.#hasMore = true;
    if (!this.#isTelling) void this.#tellAll();
  }

  /** Calls `heard` whenever another server told of a change, until this is closed. */
  start(heard: () => void): void {
    void this.#listen(heard);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#signals.close();
  }

  async #tellAll(): Promise<void> {
    this.#isTelling = true;
    while (this.#hasMore && !this.#closing.signal.aborted) {
      this.#hasMore = false;
      const storeId = this.#storeId();
      if (storeId === undefined) break;
      // What cannot be told is found by the others' next poll.
      const name = nameInRedis(TAGS_CHANGED, storeId);
      await this.#signals.broadcast(name, this.#self).catch(() => undefined);
    }
    this.#isTelling = false;
  }

  async #listen(heard: () => void): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        const name = nameInRedis(TAGS_CHANGED, await knownStoreId(this.#storeId, signal));
        await using listener = await this.#signals.listen(name, { signal });
        await this.#hear(listener, heard);
      } catch {
        // Not connected, or an hour without a signal: the polls go on meanwhile.
        await pause(RETRY_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async #hear(listener: Listener, heard: () => void): Promise<never> {
    const { signal } = this.#closing;
    for (;;) {
      const { signals, missed } = await listener.wait({ timeoutMs: WAIT_MS, signal });
      // Of its own changes a server knows already.
      if (missed.length > 0 || signals.some(({ data }) => data !== this.#self)) heard();
    }
  }
}
