/** What a row, or an answer about it, says of its history. */
export interface Versioned {
  readonly version: bigint;
  readonly epoch: bigint;
}

/** The ids of a grant. */
export interface GrantedIds {
  readonly epoch: bigint;
  readonly base: bigint;
  readonly count: number;
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
 * 3. Versions alone hide a store that went back as soon as others have raised them again: another server, or a grant that
 *    this server had stopped waiting for. Within an epoch a floor goes down only by a give-back, over ids of whoever gives
 *    them back. So a grant that is not above the highest id granted here, and not given back, shows it as well.
 */
export class VersionGuard {
  #seen = new Map<string, Versioned>();
  /** What was seen before the present history was heard of, until the tag is seen in it. */
  #earlier: ReadonlyMap<string, Versioned> = new Map();

  /** The highest id of each tag that was granted here and not given back, under its epoch: whichever history that is of. */
  readonly #granted = new Map<string, { readonly epoch: bigint; last: bigint }>();

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

  /**
   * Takes note of the ids of a grant that will be used, from a tag whose ids only rise. False when the store went back:
   * some of them may have been granted to this server before. Grants of one tag must come in the order of their versions.
   */
  admitIds(tag: string, { epoch, base, count }: GrantedIds): boolean {
    const known = this.#granted.get(tag);
    if (known !== undefined && epoch <= known.epoch) {
      if (epoch < known.epoch) return true;
      if (base <= known.last) return false;
    }
    this.#granted.set(tag, { epoch, last: base + BigInt(count) - 1n });
    return true;
  }

  /** The ids from `from` on may be granted again. To be called before the store hears of it. */
  giveBack(tag: string, from: bigint): void {
    const known = this.#granted.get(tag);
    if (known !== undefined && from <= known.last) known.last = from - 1n;
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
