/**
 * Knows ids that were seen: pure. Of two copies of a signal the one that comes first is new, as long as fewer than `limit`
 * new ones came in between.
 */
export class SeenIds {
  readonly #limit: number;
  /** In the order of their coming. */
  readonly #ids = new Set<string>();

  /** @param limit How many ids are remembered: the newest; at least 1. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether an id comes for the first time; it is remembered. */
  isNew(id: string): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    if (this.#ids.size > this.#limit) {
      const [oldest] = this.#ids;
      if (oldest !== undefined) this.#ids.delete(oldest);
    }
    return true;
  }
}
