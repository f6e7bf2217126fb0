import type { Token } from "@idmint/core/server";
import type { World } from "../world/world.ts";

/** By when docs/access.md says that every server which reaches the store knows of a change of tokens. */
const EVERYWHERE_MS = 2_000;
/** What clocks that drift and late timers add to that. */
const LATE_MS = 50;
/** A look at the list is given up after a second; one that took nearly as long may have been. */
const MOST_LOOK_MS = 990;
/** By how much clocks of servers are slower. */
const DRIFT = 1.01;

/** What the store said of a token. */
interface Fate {
  readonly addedAtMs: number;
  readonly removedAtMs: number | undefined;
}

/** A server's last look at the list of tokens. */
interface Look {
  /** When the store answered it; undefined: it failed, and so the server does not reach the store. */
  readonly doneAtMs: number | undefined;
  readonly stops: number;
}

/**
 * Which tokens there are for certain, and which of that a server knows: what a call that shows one has to come to.
 *
 * INVARIANT: it is told by the store, when something is done there, and by what is delivered to a server, so it knows no more and no
 * less than has happened. What the store was told before it went back counts for nothing.
 */
export class TokenLog {
  readonly #maxOfflineMs: number;
  readonly #fates = new Map<string, Fate>();
  #isSplit = false;
  readonly #looks = new Map<string, Look>();

  constructor(maxOfflineMs: number) {
    this.#maxOfflineMs = maxOfflineMs;
  }

  added({ id }: Pick<Token, "id">, atMs: number): void {
    if (!this.#isSplit) this.#fates.set(id, { addedAtMs: atMs, removedAtMs: undefined });
  }

  removed(id: string, atMs: number): void {
    if (this.#isSplit) return;
    const addedAtMs = this.#fates.get(id)?.addedAtMs ?? 0;
    this.#fates.set(id, { addedAtMs, removedAtMs: atMs });
  }

  wentBack(): void {
    this.#fates.clear();
  }

  /** What one primary has done, servers that reach the other one do not know. */
  split(isNow: boolean): void {
    this.#isSplit = isNow;
    this.#fates.clear();
  }

  /** A server has an answer that the store gave then, to what it had asked so long ago. */
  looked({ name, stops }: World, doneAtMs: number, tookMs: number): void {
    const isKnown = tookMs < MOST_LOOK_MS;
    this.#looks.set(name, { doneAtMs: isKnown ? doneAtMs : undefined, stops });
  }

  lookFailed({ name, stops }: World): void {
    this.#looks.set(name, { doneAtMs: undefined, stops });
  }

  /** Why a call that is sent to this server now and shows this token may not be answered; undefined: it may. */
  whyRefused(id: string, server: World, nowMs: number): string | undefined {
    const removedAtMs = this.#fates.get(id)?.removedAtMs;
    if (removedAtMs === undefined) return undefined;
    const sinceMs = nowMs - removedAtMs;
    if (server.steps === 0 && sinceMs > this.#maxOfflineMs * DRIFT + LATE_MS)
      return `it was revoked ${sinceMs.toFixed(0)} ms ago, longer than node.max_offline`;
    const look = this.#looks.get(server.name);
    if (look?.doneAtMs === undefined) return undefined;
    if (look.doneAtMs > removedAtMs) return "the server had read that it was revoked";
    if (look.stops !== server.stops || sinceMs <= EVERYWHERE_MS + LATE_MS) return undefined;
    return `it was revoked ${sinceMs.toFixed(0)} ms ago, and the server reaches the store`;
  }

  /** Whether this server has read that there is this token, and nobody revoked it. */
  isKnown(id: string, server: World): boolean {
    const fate = this.#fates.get(id);
    const doneAtMs = this.#looks.get(server.name)?.doneAtMs;
    if (fate === undefined || fate.removedAtMs !== undefined || doneAtMs === undefined)
      return false;
    return doneAtMs > fate.addedAtMs;
  }
}
