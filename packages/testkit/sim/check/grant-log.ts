/** Ids of one tag, and of one period of it. */
export interface IdRange {
  readonly tag: string;
  readonly period: string;
  readonly base: bigint;
  readonly last: bigint;
}

interface Granted {
  readonly base: bigint;
  last: bigint;
  readonly who: string;
  /** Whether the store had gone back, and no server had seen that yet. */
  readonly isUnseen: boolean;
  /** Whether two primaries granted then, or one of them was gone and no server had seen that yet. */
  readonly isSplit: boolean;
  /** Whether the store was accepted since with too small a gap, and without hearing whom it was granted to. */
  isUnheard: boolean;
}

/**
 * Why a repeat is none of idmint's: the sentences of docs/guarantees.md that exclude it, word for word; a test looks.
 */
export const EXCLUDED = {
  "unseen roll-back":
    "Until that poll, a server that had seen less of a tag than others may repeat ids that others issued.",
  "too small a gap":
    "An accept first asks the servers that run what they were granted, and raises floors above that, so that the gap is for servers that do not answer or are gone.",
  "ids that only an SDK knows":
    "An SDK that was given ids of an ordered tag above its floor gets no others until the tag is above them, and says so.",
  "a burst that was stopped":
    "So a process that is stopped in the middle of a burst may issue up to 1,023 more ids when it wakes up.",
  "leases that went back":
    "Leases of worker ids that went back this way are noticed only by servers that saw newer ones.",
  "two primaries":
    "Both look like the accepted store and grant the same ids, and no server can see it.",
  "Redis set back while it runs":
    "If Redis is set back while it runs, by less than about 3 s of counting or while the store is down, a server that had seen less may repeat ids ([what to do](redis.md#restoring-data-into-a-running-redis)).",
} as const;

export type ExcludedName = keyof typeof EXCLUDED;

/**
 * What the store granted, and when it did so although it had gone back. Predicates that are switched off exclude nothing: a history
 * in which what they are about cannot arise has to be clean without them.
 */
export class GrantLog {
  readonly #granted = new Map<string, Granted[]>();
  readonly #off: ReadonlySet<ExcludedName>;
  #isUnseen = false;
  #wasUnseen = false;
  #wasUnheard = false;
  /** `over`: there is one primary again, and what the other one granted is not known to it. */
  #split: "now" | "over" | "none" = "none";
  #wasSplit = false;

  constructor(off: readonly ExcludedName[] = []) {
    this.#off = new Set(off);
  }

  /** The store goes back and does not look it. */
  wentBack(): void {
    this.#isUnseen = true;
    this.#wasUnseen = true;
  }

  /** Some servers reach another primary than the others, or no longer do. */
  split(isNow: boolean): void {
    this.#split = isNow ? "now" : "over";
    this.#wasSplit = true;
  }

  /** A server has seen it, or an operator accepted the store. */
  seen(): void {
    this.#isUnseen = false;
    if (this.#split === "over") this.#split = "none";
  }

  /** Whether something was granted, at any time, that the store does not know of, or what it does not know was. */
  get wasLost(): boolean {
    const isUnseen = this.#wasUnseen && this.#isOn("unseen roll-back");
    const isUnheard = this.#wasUnheard && this.#isOn("too small a gap");
    return isUnseen || isUnheard || this.#hasSplit;
  }

  /** Whether what the store says now may not be so: it went back and nobody saw that, or there are two. */
  get isUntold(): boolean {
    return this.#isUnseenNow || this.#isSplitNow;
  }

  /** Whether two may have been leased one worker id. */
  get wereLeasesLost(): boolean {
    return (this.#wasUnseen && this.#isOn("leases that went back")) || this.#hasSplit;
  }

  add(who: string, { tag, period, base, last }: IdRange): void {
    const key = keyOf(tag, period);
    const all = this.#granted.get(key) ?? [];
    const [isUnseen, isSplit] = [this.#isUnseenNow, this.#isSplitNow];
    all.push({ base, last, who, isUnseen, isSplit, isUnheard: false });
    this.#granted.set(key, all);
  }

  /** By whom it was granted to: another primary may have granted as far to somebody else. */
  givenBack(who: string, { tag, base, last }: Omit<IdRange, "period">): void {
    const all = this.#granted.get(keyOf(tag, ""));
    const its = all?.findLast((one) => one.last === last && one.who === who);
    if (its !== undefined) its.last = base - 1n;
  }

  isGranted(tag: string, period: string, id: bigint): boolean {
    const all = this.#granted.get(keyOf(tag, period)) ?? [];
    return all.findLast(({ base, last }) => base <= id && id <= last) !== undefined;
  }

  /** The store was accepted with too small a gap. */
  accepted(heard: ReadonlySet<string>): void {
    for (const all of this.#granted.values()) {
      for (const one of all) {
        if (heard.has(one.who) || !this.#isOn("too small a gap")) continue;
        one.isUnheard = true;
        this.#wasUnheard = true;
      }
    }
  }

  /**
   * Whether this id was granted a second time in an unseen roll-back or by a second primary, to another server than before, or after
   * an accept that did not hear who had it: see EXCLUDED.
   */
  isExcluded(tag: string, period: string, id: bigint): boolean {
    const all = this.#granted.get(keyOf(tag, period)) ?? [];
    const its = all.filter(({ base, last }) => base <= id && id <= last);
    return its.some((one, at) =>
      its.slice(0, at).some((before) => before.who !== one.who && isRepeatable(before, one)),
    );
  }

  /** Whether an id was granted to somebody whom an accept with too small a gap did not hear. */
  isUnheard(tag: string, period: string, id: bigint): boolean {
    const all = this.#granted.get(keyOf(tag, period)) ?? [];
    return all.some(({ base, last, isUnheard }) => isUnheard && base <= id && id <= last);
  }

  /** Whether an id is one of those that were granted in an unseen roll-back, or while there were two primaries. */
  isOfUnseen(tag: string, period: string, id: bigint): boolean {
    const all = this.#granted.get(keyOf(tag, period)) ?? [];
    return all.some(
      ({ base, last, isUnseen, isSplit }) => (isUnseen || isSplit) && base <= id && id <= last,
    );
  }

  get #isUnseenNow(): boolean {
    return this.#isUnseen && this.#isOn("unseen roll-back");
  }

  get #isSplitNow(): boolean {
    return this.#split !== "none" && this.#isOn("two primaries");
  }

  get #hasSplit(): boolean {
    return this.#wasSplit && this.#isOn("two primaries");
  }

  #isOn(name: ExcludedName): boolean {
    return !this.#off.has(name);
  }
}

function isRepeatable(before: Granted, again: Granted): boolean {
  return again.isUnseen || before.isUnheard || (before.isSplit && again.isSplit);
}

function keyOf(tag: string, period: string): string {
  return `${tag} ${period}`;
}
