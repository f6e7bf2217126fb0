import type { Claim } from "../claims/ports.ts";

/** What a row, or an answer about it, says of its history. */
export interface Versioned {
  readonly version: bigint;
  readonly epoch: bigint;
}

/** The ids of a grant, or of a raise. */
export interface GrantedIds {
  readonly epoch: bigint;
  readonly first: bigint;
  readonly last: bigint;
  /** First day of the period that they belong to; empty for tags without periods. */
  readonly period: string;
}

/**
 * What ids of a grant are to this server. `new`: they are above all that it was granted before. `again`: some of them may have
 * been granted to it in the same epoch, so the store went back. `below`: the same across epochs, so the store was accepted
 * with too small a gap.
 */
export type IdsVerdict = "new" | "again" | "below";

/** The highest id of a tag and a period that was granted here and not given back. */
export interface HighestGranted {
  readonly period: string;
  /** That of the last grant; an accept takes a higher one. */
  readonly epoch: bigint;
  readonly last: bigint;
}

/** What a server has seen of a tag, which a poll compares with the store. */
export interface SeenTag {
  readonly tag: string;
  /** The highest that was seen. */
  readonly version: bigint;
  /** Of the period that was granted from last; undefined: nothing was granted. A store that tells by versions looks past it. */
  readonly granted?: HighestGranted | undefined;
}

/** What is remembered of one tag. */
interface Known {
  /** The highest version seen in the present history. */
  seen: Versioned | undefined;
  /** The highest one seen before the present history was heard of. */
  earlier: Versioned | undefined;
  /** Of the period that was granted from last, whichever history that was in. */
  granted: HighestGranted | undefined;
  /** Of other periods, at most MAX_PERIODS. Undefined: there is none. */
  others: readonly HighestGranted[] | undefined;
}

/** A sequence moves to its next period, and goes back to an earlier one when an operator wants that. */
const MAX_PERIODS = 8;

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
 *    this server had stopped waiting for. Within a period a floor goes down only by a give-back, over ids of whoever gives
 *    them back. So ids that are not above the highest id granted here, and not given back, were granted before. That holds
 *    across epochs too: an accept raises floors, and does not know by itself what was granted above them.
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
   * Takes note of the ids of a grant, which may be used if they are `new`. Grants of one tag must come in the order of their
   * versions.
   */
  admitIds(tag: string, { epoch, first, last, period }: GrantedIds): IdsVerdict {
    const known = this.#of(tag);
    const { granted } = known;
    const before = granted?.period === period ? granted : otherOf(known, period);
    if (before !== undefined && first <= before.last) {
      return epoch === before.epoch ? "again" : "below";
    }
    if (granted !== undefined && granted.period !== period) {
      const others = (known.others ?? []).filter((other) => other.period !== period);
      known.others = [granted, ...others].slice(0, MAX_PERIODS);
    }
    known.granted = { period, epoch, last };
    return "new";
  }

  /** The highest id of a tag and a period that was granted here and not given back. */
  highest(tag: string, period: string): HighestGranted | undefined {
    const known = this.#tags.get(tag);
    if (known === undefined) return undefined;
    return known.granted?.period === period ? known.granted : otherOf(known, period);
  }

  /** The tags of which ids were granted here. */
  grantedTags(): readonly string[] {
    return [...this.#tags].flatMap(([tag, { granted }]) => (granted === undefined ? [] : [tag]));
  }

  /**
   * What was granted here and not given back, of each tag and period. Ids that are being given back were never issued, and whoever
   * is granted them afterwards claims them too.
   */
  *claims(): Generator<Claim, void, undefined> {
    for (const [tag, { granted, others = [] }] of this.#tags) {
      if (granted === undefined) continue;
      for (const { period, last } of [granted, ...others]) {
        if (last > 0n) yield { tag, period, last };
      }
    }
  }

  /**
   * The ids `from` … `to` may be granted again. To be called before the store hears of it. Where ids above them were granted
   * here too, straight to a caller, the store takes nothing back, and all of it stays granted.
   */
  giveBack(tag: string, { from, to }: { readonly from: bigint; readonly to: bigint }): void {
    const known = this.#tags.get(tag);
    const granted = known?.granted;
    if (known === undefined || granted?.last !== to) return;
    known.granted = { ...granted, last: from - 1n };
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
      known = { seen: undefined, earlier: undefined, granted: undefined, others: undefined };
      this.#tags.set(tag, known);
    }
    return known;
  }

  /** Up to `limit` tags with what was seen of them, going round all of them from call to call. */
  *watch(limit: number, cursor: { after: number }): Generator<SeenTag, void, undefined> {
    const size = this.#tags.size;
    if (size === 0) return;
    const from = cursor.after % size;
    const count = Math.min(limit, size);
    cursor.after = (from + count) % size;
    let position = 0;
    for (const [tag, { seen, granted }] of this.#tags) {
      const distance = (position - from + size) % size;
      if (distance < count && seen !== undefined) yield { tag, version: seen.version, granted };
      position++;
    }
  }
}

/** What was seen of a tag before the present history was heard of, if the epoch is still the same. */
function earlierOf({ earlier }: Known, epoch: bigint): Versioned | undefined {
  return earlier?.epoch === epoch ? earlier : undefined;
}

function otherOf({ others }: Known, period: string): HighestGranted | undefined {
  return others?.find((other) => other.period === period);
}
