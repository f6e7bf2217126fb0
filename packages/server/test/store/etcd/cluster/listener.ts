import { setTimeout as pause } from "node:timers/promises";
import type { Store } from "@idmint/core/server";
import { onTestFinished } from "vitest";
import { openStore } from "../../../../src/store/open-store.ts";
import type { EtcdHarness } from "../harness.ts";

/** A machine that is busy with other tests takes its time. */
export const SOON_MS = 20_000;

/** A store that listens, and how often it heard something. */
export class Listener {
  heard = 0;

  constructor(store: Store) {
    store.listen?.(() => this.heard++);
  }

  /** Waits until something was heard after `before`. */
  async more(before: number): Promise<void> {
    const end = performance.now() + SOON_MS;
    while (this.heard <= before) {
      if (performance.now() > end) throw new Error(`nothing was heard after ${before} times`);
      await pause(5);
    }
  }

  /** Waits until nothing was heard for a moment; answers how often something was until then. */
  async quiet(): Promise<number> {
    for (let before = -1; before !== this.heard; await pause(300)) before = this.heard;
    return this.heard;
  }
}

/** Opens a store that listens, and waits until it does. */
export async function listening(
  harness: EtcdHarness,
): Promise<{ store: Store; listener: Listener }> {
  const store = await openStore(harness.config);
  onTestFinished(() => store.close());
  const listener = new Listener(store);
  // The first is of the beginning.
  await listener.more(0);
  return { store, listener };
}
