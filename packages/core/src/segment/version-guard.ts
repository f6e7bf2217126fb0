/**
 * Remembers the highest version of each tag's row that this server has seen. The version rises with every change of the
 * floor, so a row with a lower one means that the store went back (a fail-over to a lagging replica, a restored
 * backup), and that ids granted since may be granted again.
 *
 * INVARIANT: an answer is compared with what had been seen *when its request was sent*. Answers to requests that
 * overlap may arrive in any order, so a later look would take an overtaken answer for a store that went back.
 */
export class VersionGuard {
  readonly #seen = new Map<string, bigint>();

  /** The highest version seen of a tag; 0n when none was. To be asked when a request is sent. */
  seen(tag: string): bigint {
    return this.#seen.get(tag) ?? 0n;
  }

  /** Takes note of a version that the store answered. */
  observe(tag: string, version: bigint): void {
    if (version > this.seen(tag)) this.#seen.set(tag, version);
  }

  /**
   * Takes note of a grant. False when the store went back: a grant raises the version, so it must be above what had
   * been seen when it was asked for.
   */
  admitGrant(tag: string, seenWhenSent: bigint, version: bigint): boolean {
    if (version <= seenWhenSent) return false;
    this.observe(tag, version);
    return true;
  }

  /** Forgets everything: an operator accepted the store as it is. */
  forgetAll(): void {
    this.#seen.clear();
  }

  /** Up to `limit` tags with their versions, going round all of them from call to call. */
  *watch(
    limit: number,
    cursor: { after: number },
  ): Generator<{ tag: string; version: bigint }, void, undefined> {
    const size = this.#seen.size;
    if (size === 0) return;
    const from = cursor.after % size;
    const count = Math.min(limit, size);
    cursor.after = (from + count) % size;
    let position = 0;
    for (const [tag, version] of this.#seen) {
      const distance = (position - from + size) % size;
      if (distance < count) yield { tag, version };
      position++;
    }
  }
}
