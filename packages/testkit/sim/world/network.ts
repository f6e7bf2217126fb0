import { Dice } from "./random.ts";
import type { EventQueue } from "./queue.ts";
import type { World } from "./world.ts";

/** Mean of what a message takes beyond the least, and the share of those that take far longer. */
const LEAST_MS = 0.2;
const MEAN_MS = 0.8;
const SLOW_SHARE = 0.004;
const SLOW_MEAN_MS = 120;
/** Mean time after which a proxy sends a request again. */
const AGAIN_MS = 400;

/** What is wrong with the way from one place to another. */
export interface Trouble {
  /** Nothing passes. */
  readonly isCut?: boolean;
  /** Share of messages that get lost. */
  readonly loss?: number;
  /** Mean of a further delay. */
  readonly delayMs?: number;
  /** Share of requests that come twice, as through a proxy that tries again. */
  readonly twice?: number;
}

/** Which way: from one place to another; `*` is any. */
export type Way = readonly [from: string, to: string];

/**
 * Carries messages between places. Each takes a time of its own, so one may overtake another: requests run on many connections, and
 * answers come back as they are ready.
 */
export class Network {
  readonly #queue: EventQueue;
  readonly #dice: Dice;
  readonly #troubles = new Set<{ readonly ways: readonly Way[]; readonly trouble: Trouble }>();
  sent = 0;

  constructor(seed: string, queue: EventQueue) {
    this.#queue = queue;
    this.#dice = new Dice(`${seed}/network`);
  }

  /** Makes trouble on some ways; the answer ends it. */
  disturb(ways: readonly Way[], trouble: Trouble): () => void {
    const one = { ways, trouble };
    this.#troubles.add(one);
    return () => void this.#troubles.delete(one);
  }

  /** Whether something that a node does leaves it, and how long it is under way; undefined: it does not arrive. */
  #delay(from: string, to: string): number | undefined {
    const dice = this.#dice;
    let delayMs = LEAST_MS + dice.about(MEAN_MS);
    if (dice.chance(SLOW_SHARE)) delayMs += dice.about(SLOW_MEAN_MS);
    let arrives = true;
    for (const { ways, trouble } of this.#troubles) {
      if (!isAmong(ways, from, to)) continue;
      if (trouble.isCut === true || dice.chance(trouble.loss ?? 0)) arrives = false;
      if (trouble.delayMs !== undefined) delayMs += dice.about(trouble.delayMs);
    }
    return arrives ? delayMs : undefined;
  }

  /** Sends something that a node does. `to` is a place; what arrives there is the business of `arrive`. */
  send(from: World, to: string, arrive: () => void): void {
    if (!from.acts()) return;
    this.carry(from.place, to, arrive);
  }

  /** The same for a request, which a proxy on the way may send a second time. */
  request(from: World, to: string, arrive: () => void): void {
    if (!from.acts()) return;
    this.carry(from.place, to, arrive);
    for (const { ways, trouble } of this.#troubles) {
      if (!isAmong(ways, from.place, to)) continue;
      if (!this.#dice.chance(trouble.twice ?? 0)) continue;
      const laterMs = this.#dice.about(AGAIN_MS);
      this.#queue.after(laterMs, () => this.carry(from.place, to, arrive));
      return;
    }
  }

  /** The same for what is no node: the store answers, a connection breaks. */
  carry(from: string, to: string, arrive: () => void): void {
    this.sent++;
    const delayMs = this.#delay(from, to);
    if (delayMs !== undefined) this.#queue.after(delayMs, arrive);
  }

  /**
   * One way of a connection: what is sent on it arrives in the order in which it was sent, and after something that got lost nothing
   * does.
   */
  line(from: World, to: string): (arrive: () => void) => void {
    const underWay: (() => void)[] = [];
    let lastAt = 0;
    let isDead = false;
    return (arrive) => {
      if (isDead || !from.acts()) return;
      this.sent++;
      const delayMs = this.#delay(from.place, to);
      if (delayMs === undefined) {
        isDead = true;
        return;
      }
      lastAt = Math.max(lastAt, this.#queue.now + delayMs);
      underWay.push(arrive);
      this.#queue.after(lastAt - this.#queue.now, () => underWay.shift()?.());
    };
  }
}

function isAmong(ways: readonly Way[], from: string, to: string): boolean {
  return ways.some((way) => isOf(way[0], from) && isOf(way[1], to));
}

function isOf(pattern: string, place: string): boolean {
  return pattern === "*" || pattern === place;
}
