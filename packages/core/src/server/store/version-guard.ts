import { countsToFloor } from "../../kinds/table.ts";
import type { Claim } from "../claims/ports.ts";
import type { Tag } from "../tag/tag.ts";

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

/** What a row says of how far ids are gone. */
export type RowFloor = Pick<Tag, "floor" | "kind" | "name" | "periodStart" | "version">;

/** What a server has seen of a tag, which a poll compares with the store. */
export interface SeenTag {
  readonly tag: string;
  /** The highest that was seen. */
  readonly version: bigint;
  /** Of the period that was granted from last; undefined: nothing was granted. A store that tells by versions looks past it. */
  readonly granted?: HighestGranted | undefined;
}

/** What a server remembers of a tag from one life to the next: all that was granted to it, and the version that it saw then. */
export interface KeptTag {
  readonly tag: string;
  readonly granted: HighestGranted;
  readonly others: readonly HighestGranted[];
  /** In the history that the server was in last; 0n: none was seen in it. */
  readonly version: bigint;
}

/** Keeps what was granted over a restart. To have been told is to have it kept: nothing is used of a grant before. */
export interface GrantKeeper {
  /** What was granted of a tag and a period reaches up to `last` from now on, which is lower after a give-back. */
  granted(tag: string, highest: HighestGranted, version: bigint): void;
}

/** What is remembered of one tag. */
interface Known {
  /** The highest version seen in the present history. */
  seen: Versioned | undefined;
  /** The highest one seen before the present history was heard of. */
  earlier: Versioned | undefined;
  /** Of the period that was granted from last, whichever history that was in. */
  granted: HighestGranted | undefined;
  /** Where the ids begin that were granted here without a gap up to that one, and what was granted before them. */
  run: { readonly first: bigint; readonly before: HighestGranted | undefined } | undefined;
  /** Of other periods, at most MAX_PERIODS. Undefined: there is none. */
  others: readonly HighestGranted[] | undefined;
  /** The highest floor that a row was seen with, of the period that was seen last: others may have issued ids up to it. */
  floor: Omit<HighestGranted, "epoch"> | undefined;
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
  #keeper: GrantKeeper | undefined;
  /** Versions that an earlier life of the server saw, until the store's history is known. */
  #resumed: { readonly incarnation: string; readonly versions: Map<string, Versioned> } | undefined;

  /**
   * Goes on with what an earlier life of the server was granted; to be called before anything is asked for. `incarnation`: the
   * history that the versions are of. What is granted from now on goes to `keeper`.
   */
  resume(incarnation: string, tags: Iterable<KeptTag>, keeper: GrantKeeper): void {
    const versions = new Map<string, Versioned>();
    for (const { tag, granted, others, version } of tags) {
      const known = this.#of(tag);
      known.granted = granted;
      known.others = others.length === 0 ? undefined : others;
      if (version > 0n) versions.set(tag, { version, epoch: granted.epoch });
    }
    this.#resumed = { incarnation, versions };
    this.#keeper = keeper;
  }

  /** The store is in this history. What was seen in an earlier one is what `startHistory` makes of it. */
  entered(incarnation: string): void {
    const resumed = this.#resumed;
    this.#resumed = undefined;
    if (resumed === undefined) return;
    for (const [tag, version] of resumed.versions) {
      if (resumed.incarnation === incarnation) this.observe(tag, version);
      else this.#of(tag).earlier ??= version;
    }
  }

  /** What a later life of the server is to know. */
  *kept(): Generator<KeptTag, void, undefined> {
    for (const [tag, { seen, granted, others = [] }] of this.#tags) {
      if (granted === undefined) continue;
      const version = seen ?? this.#resumed?.versions.get(tag);
      yield { tag, granted, others, version: version?.version ?? 0n };
    }
  }

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
   * Takes note of how far the ids of a tag are gone, as its row says it. Nothing is remembered of tags that are not known here:
   * who asks for one sees its row first. Where others lower the floor later, by a give-back, it costs a gap.
   */
  observeFloor({ name, kind, floor, version, periodStart }: RowFloor): void {
    const known = this.#tags.get(name);
    if (known === undefined || version === 0n || !countsToFloor(kind)) return;
    const before = known.floor;
    if (before?.period === periodStart && floor <= before.last) return;
    known.floor = { period: periodStart, last: floor };
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
    known.others = othersAfter(granted, known.others, period);
    // Of what was granted in an earlier life, where it begins is not known.
    const isLonger = before !== undefined && before === granted && first === before.last + 1n;
    if (!isLonger) known.run = { first, before };
    known.granted = { period, epoch, last };
    this.#keeper?.granted(tag, known.granted, known.seen?.version ?? 0n);
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
   * What was granted here and not given back, of each tag and period, and the floors that rows were seen with: who was granted what
   * is below may be gone. Ids that are being given back were never issued, and whoever is granted them afterwards claims them too.
   */
  *claims(): Generator<Claim, void, undefined> {
    for (const [tag, { granted, others = [], floor }] of this.#tags) {
      let seen = floor;
      for (const { period, last: own } of granted === undefined ? [] : [granted, ...others]) {
        const last = seen?.period === period && seen.last > own ? seen.last : own;
        if (seen?.period === period) seen = undefined;
        if (last > 0n) yield { tag, period, last };
      }
      if (seen !== undefined && seen.last > 0n) yield { tag, ...seen };
    }
  }

  /**
   * The ids `from` … `to` may be granted again. To be called before the store hears of it. Where ids above them were granted
   * here too, straight to a caller, the store takes nothing back, and all of it stays granted. False: it must not hear of it,
   * since a later life of this server would take them for its own. They are a gap then.
   *
   * Of ids below those, only what was granted here stays granted here: others give back theirs, and then all may be granted again.
   */
  giveBack(tag: string, { from, to }: { readonly from: bigint; readonly to: bigint }): boolean {
    const known = this.#tags.get(tag);
    const granted = known?.granted;
    if (known === undefined || granted?.last !== to) return true;
    const { run } = known;
    const isAll = run !== undefined && from <= run.first;
    const before = (isAll ? run.before : granted) ?? { ...granted, last: 0n };
    const lowered = before.last < from ? before : { ...before, last: from - 1n };
    try {
      this.#keeper?.granted(tag, lowered, known.seen?.version ?? 0n);
    } catch {
      return false;
    }
    known.granted = lowered;
    if (isAll) known.run = undefined;
    return true;
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
      known = {
        seen: undefined,
        earlier: undefined,
        granted: undefined,
        run: undefined,
        others: undefined,
        floor: undefined,
      };
      this.#tags.set(tag, known);
    }
    return known;
  }

  /** Up to `limit` tags with what was seen of them, going round all of them from call to call. */
  *watch(limit: number, cursor: { after: number }): Generator<SeenTag, void, undefined> {
    const size = this.#tags.size;
    // Of versions that are kept nothing is compared before it is known which history they are of.
    if (size === 0 || this.#resumed !== undefined) return;
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

/** Other periods than the one that is granted from now. */
export function othersAfter(
  before: HighestGranted | undefined,
  others: readonly HighestGranted[] | undefined,
  period: string,
): readonly HighestGranted[] | undefined {
  if (before === undefined || before.period === period) return others;
  const rest = (others ?? []).filter((other) => other.period !== period);
  return [before, ...rest].slice(0, MAX_PERIODS);
}

/** What was seen of a tag before the present history was heard of, if the epoch is still the same. */
function earlierOf({ earlier }: Known, epoch: bigint): Versioned | undefined {
  return earlier?.epoch === epoch ? earlier : undefined;
}

function otherOf({ others }: Known, period: string): HighestGranted | undefined {
  return others?.find((other) => other.period === period);
}
