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

/** What is remembered of one tag. */
interface Known {
  /** The highest version seen in the present history. */
  seen: Versioned | undefined;
  /** The highest one seen before the present history was heard of. */
  earlier: Versioned | undefined;
  /** The highest id that was granted here and not given back, under its epoch: whichever history that is of. */
  granted: { readonly epoch: bigint; last: bigint } | undefined;
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
 *    accepted history may have been answered before the server heard of it. Epochs do not come again in another history,
 *    so what was seen still counts for answers of the same epoch. (They are times in seconds. A store that is accepted,
 *    restored and accepted again within one second has the same epoch twice, and is refused until one more accept.)
 * 3. Versions alone hide a store that went back as soon as others have raised them again: another server, or a grant that
 *    this server had stopped waiting for. Within an epoch a floor goes down only by a give-back, over ids of whoever gives
 *    them back. So a grant that is not above the highest id granted here, and not given back, shows it as well.
 */
export class VersionGuard {
  readonly #tags = new Map<string, Known>();

  /** The highest version seen of a tag; 0n when none was. To be asked when a request is sent. */
  seen(tag: string): bigint {
    return this.#tags.get(tag)?.seen?.version ?? 0n;
  }

  /** Takes note of a version that the store answered. */
  observe(tag: string, { version, epoch }: Versioned): void {
    const known = this.#of(tag);
    const before = known.seen ?? earlierOf(known, epoch);
    known.seen = before === undefined || version > before.version ? { version, epoch } : before;
  }

  /**
   * Takes note of a grant. False when the store went back: a grant raises the version, so it must be above what had
   * been seen when it was asked for.
   */
  admitGrant(tag: string, seenWhenSent: bigint, granted: Versioned): boolean {
    const { version, epoch } = granted;
    const isAbove = version > seenWhenSent;
    const earlier = earlierOf(this.#of(tag), epoch);
    const isRepeat = seenWhenSent === 0n && version <= (earlier?.version ?? 0n);
    this.observe(tag, granted);
    return isAbove && !isRepeat;
  }

  /**
   * Takes note of the ids of a grant that will be used, from a tag whose ids only rise. False when the store went back:
   * some of them may have been granted to this server before. Grants of one tag must come in the order of their versions.
   */
  admitIds(tag: string, { epoch, base, count }: GrantedIds): boolean {
    const known = this.#of(tag);
    const { granted } = known;
    if (granted !== undefined && epoch <= granted.epoch) {
      if (epoch < granted.epoch) return true;
      if (base <= granted.last) return false;
    }
    known.granted = { epoch, last: base + BigInt(count) - 1n };
    return true;
  }

  /** The ids from `from` on may be granted again. To be called before the store hears of it. */
  giveBack(tag: string, from: bigint): void {
    const granted = this.#tags.get(tag)?.granted;
    if (granted !== undefined && from <= granted.last) granted.last = from - 1n;
  }

  /** An operator accepted the store as it is. */
  startHistory(): void {
    for (const known of this.#tags.values()) {
      known.earlier = known.seen;
      known.seen = undefined;
    }
  }

  #of(tag: string): Known {
    let known = this.#tags.get(tag);
    if (known === undefined) {
      known = { seen: undefined, earlier: undefined, granted: undefined };
      this.#tags.set(tag, known);
    }
    return known;
  }

  /** Up to `limit` tags with their versions, going round all of them from call to call. */
  *watch(
    limit: number,
    cursor: { after: number },
  ): Generator<{ tag: string; version: bigint }, void, undefined> {
    const size = this.#tags.size;
    if (size === 0) return;
    const from = cursor.after % size;
    const count = Math.min(limit, size);
    cursor.after = (from + count) % size;
    let position = 0;
    for (const [tag, { seen }] of this.#tags) {
      const distance = (position - from + size) % size;
      if (distance < count && seen !== undefined) yield { tag, version: seen.version };
      position++;
    }
  }
}

/** What was seen of a tag before the present history was heard of, if the epoch is still the same. */
function earlierOf({ earlier }: Known, epoch: bigint): Versioned | undefined {
  return earlier?.epoch === epoch ? earlier : undefined;
}
