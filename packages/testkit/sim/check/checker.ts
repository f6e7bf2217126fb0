import type { Segment } from "@idmint/core";
import type { LookupIdResponse } from "@idmint/proto";
import type { Dice } from "../world/random.ts";
import { type Held, Holders, wrongHolder } from "./holders.ts";
import { type ExcludedName, GrantLog, type IdRange } from "./grant-log.ts";
import { type RedisLoss, RedisLog } from "./redis-log.ts";
import { type TicketGrant, TicketLog } from "./ticket-log.ts";
import type { EventQueue } from "../world/queue.ts";
import type { Trace } from "../world/trace.ts";

export type { Held } from "./holders.ts";

export type Order = "UNORDERED" | "PER_CLIENT" | "STRICT";

/** What a tag of a history promises. */
export interface Promised {
  readonly order: Order;
  readonly ceiling: bigint;
  /** Whether the store has to have granted each id. */
  readonly isGranted: boolean;
  /** Whether an id hangs on a worker id that is leased. */
  readonly isLeased: boolean;
  /** Whether callers get the numbers that were granted, as numbers. */
  readonly isPlain: boolean;
  /** Residue classes of a ticket tag, whose ids its databases grant. */
  readonly slots?: number | undefined;
}

/** Who asks. A program with the SDK is one for as long as it lives. */
export interface Asker {
  readonly name: string;
  /** Whether it remembers what it was given, as the SDK does. */
  readonly isSdk: boolean;
  /** Whether it is in the middle of a burst, or was when its process was stopped: see EXCLUDED. */
  readonly isInBurst?: boolean;
}

/** A call that has begun. */
export interface Begun {
  readonly tag: string;
  readonly asker: Asker;
  readonly atMs: number;
  /** Highest ids that had been answered by then: to everybody, and to this asker. */
  readonly all: Place;
  readonly own: Place;
}

/** Ids that somebody got. */
export interface Got {
  readonly segments: readonly Segment[];
  /** Ids that are text, and no numbers behind it. */
  readonly texts?: readonly string[];
  /** First day of the period; empty for tags without. */
  readonly period: string;
}

interface Place {
  readonly period: string;
  readonly id: bigint;
}

/** A change of an operator that is in effect from a moment on. */
interface Effect {
  readonly tag: string;
  readonly atMs: number;
  /** Ids up to this one are not issued any more; undefined: none is issued until the change is taken back. */
  readonly floor: bigint | undefined;
  endedAtMs: number;
}

export interface Violation {
  readonly what: string;
  readonly atMs: number;
}

/** What no caller is ever refused with, whatever befalls a fleet. */
const UNHEARD_OF: ReadonlySet<string> = new Set([
  "INTERNAL",
  "INVALID_ARGUMENT",
  "MALFORMED_REQUEST",
  "SEGMENT_INVALID",
]);

export function isUnheardOf(reason: string): boolean {
  return UNHEARD_OF.has(reason) || !/^[A-Z_]+$/.test(reason);
}

const NOWHERE: Place = { period: "", id: -1n };

/** Holds what callers get against what docs/guarantees.md promises, at every answer. */
export class Checker {
  readonly violations: Violation[] = [];
  calls = 0;
  answered = 0;
  ids = 0;
  /** Repeats that docs/guarantees.md excludes. */
  excluded = 0;
  /** Rises when the store goes back: what was changed before may be undone. */
  era = 0;
  /** Answers that an effect was held against. */
  judged = 0;
  readonly #log: GrantLog;
  readonly #redis: RedisLog;
  readonly #tickets = new TicketLog();
  readonly #holders = new Holders();
  readonly #queue: EventQueue;
  readonly #trace: Trace;
  readonly #promised = new Map<string, Promised>();
  readonly #seen = new Map<string, Map<bigint, string>>();
  readonly #texts = new Map<string, string>();
  readonly #all = new Map<string, Place>();
  readonly #own = new Map<string, Place>();
  /** SDKs, with a tag, that know of ids above its floor: see EXCLUDED. */
  readonly #ahead = new Set<string>();
  #effects: Effect[] = [];

  /** `off`: what is no excuse in this history. */
  constructor(queue: EventQueue, trace: Trace, off?: readonly ExcludedName[]) {
    this.#log = new GrantLog(off);
    this.#redis = new RedisLog(off);
    this.#queue = queue;
    this.#trace = trace;
  }

  promise(tag: string, promised: Promised): void {
    this.#promised.set(tag, promised);
  }

  begin(asker: Asker, tag: string): Begun {
    this.calls++;
    const all = this.#all.get(tag) ?? NOWHERE;
    const own = this.#own.get(`${asker.name} ${tag}`) ?? NOWHERE;
    return { tag, asker, atMs: this.#queue.now, all, own };
  }

  got(begun: Begun, { segments, texts = [], period }: Got): void {
    const { tag, asker } = begun;
    this.answered++;
    this.#ahead.delete(`${asker.name} for ${tag}`);
    let highest = -1n;
    for (const { base, count, increment } of segments) {
      this.#trace.note(asker.name, `gets ${tag} ${period} ${base}+${count}`);
      for (let at = 0; at < count; at++) {
        const id = base + BigInt(at) * BigInt(increment);
        this.ids++;
        this.#judge(begun, period, id);
        if (id > highest) highest = id;
      }
    }
    for (const text of texts) {
      this.#trace.note(asker.name, `gets ${tag} ${text}`);
      this.ids++;
      this.#judgeText(begun, text);
    }
    if (highest >= 0n && period === "" && this.#promised.get(tag)?.isPlain === true)
      this.#holders.add({ tag, id: highest, who: asker.name });
    const place = { period, id: highest };
    raise(this.#all, tag, place);
    raise(this.#own, `${asker.name} ${tag}`, place);
  }

  /** A call got no ids. Reasons that tell of a fault of idmint's own are none that a caller may see. */
  refused({ tag, asker }: Begun, reason: string): void {
    const isLost = this.#log.wasLost;
    const { order = "UNORDERED" } = this.#promised.get(tag) ?? {};
    if (reason === "STORE_EPOCH_CHANGED" && asker.isSdk && order !== "UNORDERED" && isLost)
      this.#ahead.add(`${asker.name} for ${tag}`);
    if (!isUnheardOf(reason)) return;
    // Two servers that were granted the same ids, as is excluded, show it to an SDK that asks both.
    if (reason === "SEGMENT_INVALID" && isLost) {
      this.excluded++;
      return;
    }
    this.violate(`${tag}: ${asker.name} was refused with ${reason}`);
  }

  /** Whether who was asked last for a tag ("p1#1 for orders") was refused for ids that only an SDK knows. */
  isAhead(what: string): boolean {
    return this.#ahead.has(what);
  }

  /**
   * The answer to a change says by when it is in effect. Answers how to take it back. Nothing is held against a change that other
   * servers may never hear of.
   */
  inEffect(tag: string, atMs: number, floor?: bigint): () => void {
    if (this.#log.isUntold) return () => undefined;
    const effect: Effect = { tag, atMs, floor, endedAtMs: Infinity };
    this.#effects.push(effect);
    const what = floor === undefined ? "a stop" : `an advance to ${floor}`;
    this.#trace.note("checker", `hears that ${what} of ${tag} is in effect at ${atMs.toFixed(0)}`);
    return () => {
      effect.endedAtMs = Math.min(effect.endedAtMs, this.#queue.now);
    };
  }

  granted(who: string, range: IdRange): void {
    this.#log.add(who, range);
  }

  givenBack(who: string, range: Omit<IdRange, "period">): void {
    this.#log.givenBack(who, range);
  }

  /** A ticket database granted ids, which no other one did, nor itself before. */
  ticketsGranted(grant: TicketGrant): void {
    const { tag } = grant;
    const id = this.#tickets.add(grant, this.#promised.get(tag)?.slots ?? 1);
    if (id !== undefined) this.violate(`${tag}: ${id} was granted a second time`);
  }

  /** What was changed since the state that the store is in again is not there any more, so nothing is held against it. */
  storeWentBack({ isUnseen }: { readonly isUnseen: boolean }): void {
    this.era++;
    this.#effects = [];
    if (isUnseen) this.#log.wentBack();
  }

  /** Some servers reach another primary than the others from now on, or all the same one again. */
  storeIsSplit(isNow: boolean): void {
    this.era++;
    this.#effects = [];
    this.#log.split(isNow);
  }

  /** A server marked it, or an operator accepted it. */
  storeIsSeen(): void {
    this.#log.seen();
  }

  /** An operator accepted the store with too small a gap; these servers were heard before. */
  accepted(heard: ReadonlySet<string>): void {
    this.#log.accepted(heard);
  }

  /** Redis was set back while it ran. */
  redisIsSetBack(losses: readonly RedisLoss[]): void {
    for (const loss of losses) {
      const { tag, now, restored } = loss;
      const isUnnoticed = this.#redis.setBack(loss);
      const which = isUnnoticed ? "nobody may notice it" : "somebody has to notice it";
      this.#trace.note("checker", `${tag} at ${restored.count} after ${now.count}: ${which}`);
    }
  }

  heldBySomebody(dice: Dice): Held | undefined {
    return this.#holders.any(dice);
  }

  /** The ledger says who holds an id. */
  holder(answer: LookupIdResponse, held: Held): void {
    const wrong = wrongHolder(answer, held);
    if (wrong === undefined) return;
    if (this.#log.wasLost) this.excluded++;
    else this.violate(wrong);
  }

  violate(what: string): void {
    this.violations.push({ what, atMs: this.#queue.now });
    this.#trace.note("checker", what);
  }

  #judge(begun: Begun, period: string, id: bigint): void {
    const { tag, asker } = begun;
    const promised = this.#promised.get(tag);
    if (promised === undefined) return this.violate(`${tag} is no tag of this history`);
    this.#judgeUnique(begun, promised, period, id);
    if (id < 1n || id > promised.ceiling) this.violate(`${tag}: ${id} is out of bounds`);
    if (!this.#isGranted(promised, tag, period, id))
      this.violate(`${tag}: ${id} was never granted, and ${asker.name} got it`);
    const after = promised.order === "STRICT" ? begun.all : begun.own;
    const isOrdered =
      promised.order === "STRICT" || (promised.order === "PER_CLIENT" && asker.isSdk);
    if (isOrdered && !isBeyond({ period, id }, after)) {
      const isLost = this.#log.isUnheard(tag, after.period, after.id);
      const isForgotten = this.#redis.isExcluded(tag, id);
      if (isLost || isForgotten || this.#log.isOfUnseen(tag, period, id)) this.excluded++;
      else
        this.violate(`${tag}: ${asker.name} got ${period} ${id} after ${after.period} ${after.id}`);
    }
    this.#judgeEffects(begun, id);
  }

  #isGranted({ isGranted, slots }: Promised, tag: string, period: string, id: bigint): boolean {
    if (slots !== undefined) return this.#tickets.isGranted(tag, slots, id);
    return !isGranted || this.#log.isGranted(tag, period, id);
  }

  #judgeText(begun: Begun, text: string): void {
    const { tag, asker } = begun;
    const before = this.#texts.get(`${tag} ${text}`);
    this.#texts.set(`${tag} ${text}`, asker.name);
    const isExcluded = this.#promised.get(tag)?.isLeased === true && this.#log.wereLeasesLost;
    if (before !== undefined && isExcluded) this.excluded++;
    else if (before !== undefined)
      this.violate(`${tag}: ${asker.name} got ${text}, which ${before} had got`);
    this.#judgeEffects(begun, undefined);
  }

  #judgeUnique({ tag, asker }: Begun, promised: Promised, period: string, id: bigint): void {
    const key = `${tag} ${period}`;
    let seen = this.#seen.get(key);
    if (seen === undefined) this.#seen.set(key, (seen = new Map<bigint, string>()));
    const before = seen.get(id);
    if (before === undefined) {
      seen.set(id, asker.name);
      return;
    }
    const { isPlain, isLeased } = promised;
    // Of all others it asks a server for each.
    const remembers = asker.isSdk && before === asker.name && (isPlain || isLeased);
    const isForgotten = this.#redis.isExcluded(tag, isLeased ? undefined : id);
    const isExcluded = isLeased ? this.#log.wereLeasesLost : this.#log.isExcluded(tag, period, id);
    if (!remembers && (isExcluded || isForgotten)) this.excluded++;
    else this.violate(`${tag}: ${asker.name} got ${id} ${period}, which ${before} had got`);
  }

  /** Undefined: the id is no number, and above no floor. */
  #judgeEffects({ tag, asker, atMs }: Begun, id: bigint | undefined): void {
    for (const effect of this.#effects) {
      if (effect.tag !== tag || atMs <= effect.atMs) continue;
      const { floor, endedAtMs } = effect;
      if (floor === undefined && this.#queue.now >= endedAtMs) continue;
      this.judged++;
      if (floor !== undefined && (id === undefined || id > floor)) continue;
      if (asker.isSdk && asker.isInBurst === true) {
        this.excluded++;
        continue;
      }
      const what = floor === undefined ? "a stop" : `an advance to ${floor}`;
      const since = effect.atMs.toFixed(0);
      this.violate(
        `${tag}: ${asker.name} got ${id ?? "a text"}, though ${what} was in effect at ${since}`,
      );
    }
  }
}

function isBeyond(place: Place, other: Place): boolean {
  return place.period === other.period ? place.id > other.id : place.period > other.period;
}

function raise(places: Map<string, Place>, key: string, place: Place): void {
  const before = places.get(key);
  if (before === undefined || isBeyond(place, before)) places.set(key, place);
}
