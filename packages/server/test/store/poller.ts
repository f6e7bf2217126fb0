import { randomUUID } from "node:crypto";
import type { Store, StoreChanges } from "@idmint/core/server";
import { granted } from "@idmint/testkit/store-suite";
import { onTestFinished } from "vitest";
import { openStore, type StoreConfig } from "../../src/store/open-store.ts";

/** What a server does with its store once a second, here as often as it is told. */
export class Poller {
  readonly store: Store;
  /** How often a poll said that a promoted standby was accepted by itself. */
  accepts = 0;
  readonly #id = randomUUID();
  readonly #seen = new Map<string, bigint>();
  #count = 0n;
  #obeyed = { incarnation: "", obeyed: 0n };
  #since = 2n ** 63n - 1n;

  private constructor(store: Store) {
    this.store = store;
  }

  /** Closed at the end of the test. */
  static async open(config: StoreConfig): Promise<Poller> {
    const poller = new Poller(await openStore(config));
    onTestFinished(() => poller.store.close());
    return poller;
  }

  async poll(): Promise<StoreChanges> {
    this.#count++;
    const found = await this.store.changes({
      since: this.#since,
      watched: [...this.#seen].map(([tag, version]) => ({ tag, version })),
      limit: 100,
      renewal: {
        node: {
          id: this.#id,
          instance: this.#id,
          address: "",
          version: "1",
          zone: "",
          startedAtMs: 0,
          maxOfflineMs: 60_000,
        },
        count: this.#count,
        ...this.#obeyed,
        traffic: 0n,
      },
    });
    this.#since = found.revision;
    if (found.isAccepted === true) this.accepts++;
    // Versions of before an accept are compared no more.
    if (found.incarnation !== this.#obeyed.incarnation) this.#seen.clear();
    this.#obeyed = { incarnation: found.incarnation, obeyed: found.revision };
    return found;
  }

  /** Takes ids and remembers the version, as a server does. */
  async grant(tag = "t"): Promise<bigint> {
    const { base, version } = await granted(this.store, tag);
    this.#seen.set(tag, version);
    return base;
  }

  /** Polls until the store is no more fenced; answers how long that took, in milliseconds. */
  async accepted(withinMs: number): Promise<number | undefined> {
    const startedAt = performance.now();
    while (performance.now() - startedAt < withinMs) {
      const found = await this.poll().catch(() => undefined);
      if (found?.fenced === "") return performance.now() - startedAt;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    return undefined;
  }
}
