/** What a row, or an answer about it, says of its history. */
export interface Versioned {
  readonly version: bigint;
  readonly epoch: bigint;
}

/**
 * Remembers the highest version of each tag's row that this server has seen. The version rises with every change of the
 * floor, so a row with a lower one means that the store went back (a fail-over to a lagging replica, a restored
 * backup), and that ids granted since may be granted again.
 *
 * INVARIANTS
 * 1. An answer is compared with what had been seen *when its request was sent*. Answers to requests that overlap may
 *    arrive in any order, so a later look would take an overtaken answer for a store that went back.
 * 2. What was seen is forgotten when an operator accepts the store, since versions may be lower then. But a grant of the
 *    accepted history may have been answered before the server heard of it. Epochs never come again in another history,
 *    so what was seen still counts for answers of the same epoch.
 */
export class VersionGuard {
  #seen = new Map<string, Versioned>();
  /** What was seen before the present history was heard of, until the tag is seen in it. */
  #earlier: ReadonlyMap<string, Versioned> = new Map();

  /** The highest version seen of a tag; 0n when none was. To be asked when a request is sent. */
  seen(tag: string): bigint {
    return this.#seen.get(tag)?.version ?? 0n;
  }

  /** Takes note of a version that the store answered. */
  observe(tag: string, { version, epoch }: Versioned): void {
    const known = this.#seen.get(tag);
    const before = known ?? this.#sameEpoch(tag, epoch);
    if (before === undefined || version > before.version) this.#seen.set(tag, { version, epoch });
    else if (known === undefined) this.#seen.set(tag, before);
  }

  /**
   * Takes note of a grant. False when the store went back: a grant raises the version, so it must be above what had
   * been seen when it was asked for.
   */
  admitGrant(tag: string, seenWhenSent: bigint, granted: Versioned): boolean {
    const { version, epoch } = granted;
    const isAbove = version > seenWhenSent;
    const isRepeat = seenWhenSent === 0n && version <= (this.#sameEpoch(tag, epoch)?.version ?? 0n);
    this.observe(tag, granted);
    return isAbove && !isRepeat;
  }

  /** An operator accepted the store as it is. */
  startHistory(): void {
    this.#earlier = this.#seen;
    this.#seen = new Map();
  }

  #sameEpoch(tag: string, epoch: bigint): Versioned | undefined {
    const earlier = this.#earlier.get(tag);
    return earlier?.epoch === epoch ? earlier : undefined;
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
    for (const [tag, { version }] of this.#seen) {
      const distance = (position - from + size) % size;
      if (distance < count) yield { tag, version };
      position++;
    }
  }
}
