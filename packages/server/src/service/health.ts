import { overloaded } from "./call.ts";

/** Watches that are open at once, besides the first one of each connection. */
const MAX_FURTHER = 1_000;

/** Whoever is told when the server's health changes. */
export interface HealthWatcher {
  /** Its connection: address and port. */
  readonly peer: string;
  /** Who it is to admission. */
  readonly caller: string;
  changed(): void;
  /** The server stops; nothing follows. */
  end(): void;
}

/**
 * Whether this server wants calls, for those who ask and those who watch.
 *
 * INVARIANT: nobody keeps others from watching. The first watch of a connection is always taken, and that is all that most
 * clients have; `limits.connections` bounds them. Of further ones a caller may have as many as would still be free beside them,
 * so that one caller leaves half of the places to others.
 */
export class Health {
  readonly #watchers = new Set<HealthWatcher>();
  /** The connections whose first watch is open. */
  readonly #first = new Set<string>();
  /** How many further ones each caller has. */
  readonly #further = new Map<string, number>();
  #furtherOfAll = 0;
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

  /** Answers what ends the watch. Throws OVERLOADED when there is no place for it. */
  watch(watcher: HealthWatcher): () => void {
    const leave = this.#placeFor(watcher);
    this.#watchers.add(watcher);
    return () => {
      if (this.#watchers.delete(watcher)) leave();
    };
  }

  /** Ends all watches, so that connections can close. */
  close(): void {
    for (const watcher of this.#watchers) watcher.end();
    this.#watchers.clear();
  }

  /** Answers what frees the place. */
  #placeFor({ peer, caller }: HealthWatcher): () => void {
    if (!this.#first.has(peer)) {
      this.#first.add(peer);
      return () => this.#first.delete(peer);
    }
    const its = this.#further.get(caller) ?? 0;
    if (its >= MAX_FURTHER - this.#furtherOfAll) {
      const text = `this connection watches the health of this server already, and ${its} further watches are open of ${caller}, ${this.#furtherOfAll} of all; open one connection for each watch`;
      throw overloaded(text);
    }
    this.#count(caller, 1);
    return () => this.#count(caller, -1);
  }

  #count(caller: string, by: 1 | -1): void {
    const its = (this.#further.get(caller) ?? 0) + by;
    this.#furtherOfAll += by;
    if (its === 0) this.#further.delete(caller);
    else this.#further.set(caller, its);
  }
}
