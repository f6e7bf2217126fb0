import { type LedgerEntry, type LookupIdResponse, LookupResult } from "@idmint/proto";
import type { Dice } from "../world/random.ts";

/** Ids that are remembered for somebody to ask about. */
const MOST = 300;

/** An id, and who got it: an SDK, a caller that took a block, or a caller that a server gave it to. */
export interface Held {
  readonly tag: string;
  readonly id: bigint;
  readonly who: string;
}

/** Who has which ids, to be held against what the ledger says. */
export class Holders {
  readonly #held: Held[] = [];
  #next = 0;

  add(held: Held): void {
    this.#held[this.#next] = held;
    this.#next = (this.#next + 1) % MOST;
  }

  any(dice: Dice): Held | undefined {
    return this.#held.length === 0 ? undefined : dice.pick(this.#held);
  }
}

/** What is wrong with an answer of the ledger about an id that nobody but `who` had; undefined: nothing. */
export function wrongHolder(
  { result, client }: LookupIdResponse,
  { tag, id, who }: Held,
): string | undefined {
  if (result !== LookupResult.ALLOCATED) return undefined;
  const { instance } = client ?? ({ instance: "nobody" } satisfies Pick<LedgerEntry, "instance">);
  return instance === who
    ? undefined
    : `${tag}: ${who} got ${id}, and the ledger names ${instance}`;
}
