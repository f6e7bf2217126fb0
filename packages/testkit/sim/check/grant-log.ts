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
  /** Whether the store was accepted since without hearing whom it was granted to: then it is for the gap. */
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
  "Redis set back while it runs":
    "If Redis is set back while it runs, by less than about 3 s of counting or while the store is down, a server that had seen less may repeat ids ([what to do](redis.md#restoring-data-into-a-running-redis)).",
} as const;

/** What the store granted, and when it did so although it had gone back. */
export class GrantLog {
  readonly #granted = new Map<string, Granted[]>();
  #isUnseen = false;
  #wasUnseen = false;
  #wasUnheard = false;

  /** The store goes back and does not look it. */
  wentBack(): void {
    this.#isUnseen = true;
    this.#wasUnseen = true;
  }

  /** A server has seen it, or an operator accepted the store. */
  seen(): void {
    this.#isUnseen = false;
  }

  /** Whether it did so at any time. */
  get wasUnseen(): boolean {
    return this.#wasUnseen;
  }

  add(who: string, { tag, period, base, last }: IdRange): void {
    const key = keyOf(tag, period);
    const all = this.#granted.get(key) ?? [];
    all.push({ base, last, who, isUnseen: this.#isUnseen, isUnheard: false });
    this.#granted.set(key, all);
  }

  givenBack({ tag, base, last }: Omit<IdRange, "period">): void {
    const its = this.#granted.get(keyOf(tag, ""))?.findLast((one) => one.last === last);
    if (its !== undefined) its.last = base - 1n;
  }

  isGranted(tag: string, period: string, id: bigint): boolean {
    const all = this.#granted.get(keyOf(tag, period)) ?? [];
    return all.findLast(({ base, last }) => base <= id && id <= last) !== undefined;
  }

  accepted(heard: ReadonlySet<string>): void {
    for (const all of this.#granted.values()) {
      for (const one of all) {
        if (heard.has(one.who)) continue;
        one.isUnheard = true;
        this.#wasUnheard = true;
      }
    }
  }

  /** Whether an accept did not hear somebody who had been granted something. */
  get wasUnheard(): boolean {
    return this.#wasUnheard;
  }

  /**
   * Whether this id was granted a second time in an unseen roll-back, to another server than before, or after an accept that did
   * not hear who had it: see EXCLUDED.
   */
  isExcluded(tag: string, period: string, id: bigint): boolean {
    const all = this.#granted.get(keyOf(tag, period)) ?? [];
    const its = all.filter(({ base, last }) => base <= id && id <= last);
    return its.some((one, at) =>
      its
        .slice(0, at)
        .some((before) => before.who !== one.who && (one.isUnseen || before.isUnheard)),
    );
  }

  /** Whether an id was granted to somebody whom an accept with too small a gap did not hear. */
  isUnheard(tag: string, period: string, id: bigint): boolean {
    const all = this.#granted.get(keyOf(tag, period)) ?? [];
    return all.some(({ base, last, isUnheard }) => isUnheard && base <= id && id <= last);
  }

  /** Whether an id is one of those that were granted in an unseen roll-back. */
  isOfUnseen(tag: string, period: string, id: bigint): boolean {
    const all = this.#granted.get(keyOf(tag, period)) ?? [];
    return all.some(({ base, last, isUnseen }) => isUnseen && base <= id && id <= last);
  }
}

function keyOf(tag: string, period: string): string {
  return `${tag} ${period}`;
}
