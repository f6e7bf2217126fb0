import { overloaded } from "./call.ts";

/** Watches that are open at once; each is one stream of one caller. */
const MAX_WATCHES = 1_000;

/** Whoever is told when the server's health changes. */
export interface HealthWatcher {
  changed(): void;
  /** The server stops; nothing follows. */
  end(): void;
}

/** Whether this server wants calls, for those who ask and those who watch. */
export class Health {
  readonly #watchers = new Set<HealthWatcher>();
  #isServing = false;

  get isServing(): boolean {
    return this.#isServing;
  }

  /** Tells watchers when it changes. */
  setServing(isServing: boolean): void {
    if (isServing === this.#isServing) return;
    this.#isServing = isServing;
    for (const watcher of this.#watchers) watcher.changed();
  }

  /** Answers what ends the watch. Throws OVERLOADED when too many are open. */
  watch(watcher: HealthWatcher): () => void {
    if (this.#watchers.size >= MAX_WATCHES) {
      throw overloaded(`${MAX_WATCHES} callers watch the health of this server already`);
    }
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Ends all watches, so that connections can close. */
  close(): void {
    for (const watcher of this.#watchers) watcher.end();
    this.#watchers.clear();
  }
}
