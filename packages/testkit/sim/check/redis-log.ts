import type { ExcludedName } from "./grant-log.ts";

/** How far a tag had counted in Redis at one moment. */
export interface RedisCount {
  readonly generation: bigint;
  /** The last id, or what stands for it. */
  readonly count: bigint;
  /** How far it may count. */
  readonly bound: bigint;
}

/** A Redis was set back while it ran: how far a tag had counted, how far it has now, and how far all servers knew of. */
export interface RedisLoss {
  readonly tag: string;
  readonly now: RedisCount;
  readonly restored: RedisCount;
  /** Undefined: nothing. */
  readonly told: RedisCount | undefined;
}

/** How long a server may take to tell others through the store how far Redis had counted, and for how long it is looked at. */
const TOLD_MS = 3_000;
const EXCHANGE_MS = 1_400;
const KNOWN_FOR_MS = 8_000;
const MOST_TIMES = 16;

/** When servers heard from the store how far Redis had counted. */
export class MarksHeard {
  readonly #times = new Map<string, number[]>();

  heard(who: string, atMs: number): void {
    const times = this.#times.get(who) ?? [];
    times.push(atMs);
    if (times.length > MOST_TIMES) times.shift();
    this.#times.set(who, times);
  }

  /** Until when all that Redis counted is told to all: 3 s ago, or before the store went down for some of them. */
  toldUntil(nowMs: number): number {
    const moments = [...this.#times.values()].flat().toSorted((a, b) => b - a);
    const current = [nowMs, ...moments].find((at) => this.#areCurrentAt(at));
    return (current ?? -Infinity) - TOLD_MS;
  }

  /** Whether all that were there lately heard it about once a second: else the store was down for some of them. */
  #areCurrentAt(nowMs: number): boolean {
    const all = [...this.#times.values()].map((times) => times.filter((at) => at <= nowMs));
    const there = all.filter((times) => (times.at(-1) ?? -Infinity) >= nowMs - KNOWN_FOR_MS);
    // Where nobody heard anything, there is nothing to go by.
    if (there.length === 0) return false;
    return there.every((times) => {
      const recent = [...times.filter((at) => at > nowMs - TOLD_MS - EXCHANGE_MS), nowMs];
      const isRegular = recent.every((at, index) => at - (recent[index - 1] ?? at) <= EXCHANGE_MS);
      return recent.length > 1 && isRegular;
    });
  }
}

/** What a Redis forgot while it ran, where no server can know it: see EXCLUDED. */
export class RedisLog {
  readonly #isOff: boolean;
  readonly #unnoticed: { readonly tag: string; readonly above: bigint; readonly last: bigint }[] =
    [];

  /** `off`: what is no excuse in this history. */
  constructor(off: readonly ExcludedName[] = []) {
    this.#isOff = off.includes("Redis set back while it runs");
  }

  /** Whether a server that had seen less may not notice. */
  setBack({ tag, now, restored, told }: RedisLoss): boolean {
    if (!isAbove(now, restored)) return false;
    if (told !== undefined && isAbove(told, restored)) return false;
    // Ids of a later generation are all above the bound of this one.
    const last = now.generation === restored.generation ? now.count : restored.bound;
    this.#unnoticed.push({ tag, above: restored.count, last });
    return true;
  }

  /** Whether an id is one that Redis may have counted a second time, or hangs on what it forgot. */
  isExcluded(tag: string, id: bigint | undefined): boolean {
    if (this.#isOff) return false;
    return this.#unnoticed.some(
      (one) => one.tag === tag && (id === undefined || (id > one.above && id <= one.last)),
    );
  }
}

/** Whether one had counted further, or under a later generation. */
export function isAbove(one: RedisCount, other: RedisCount): boolean {
  return one.generation === other.generation
    ? one.count > other.count
    : one.generation > other.generation;
}
