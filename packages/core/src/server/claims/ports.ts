import type { NodeRow } from "../node/ports.ts";

/** What a server was granted and did not give back of a tag reaches up to `last`. */
export interface Claim {
  readonly tag: string;
  /** First day of the period that the id belongs to; empty for tags without periods. */
  readonly period: string;
  readonly last: bigint;
}

/** A server that says what it was granted. */
export interface Claimant {
  /** Of its row; see NodeInfo. */
  readonly id: string;
  readonly instance: string;
  readonly address: string;
  /** Since when it remembers all that it was granted, by its own wall clock, milliseconds since 1970. */
  readonly sinceMs: number;
  /** Whether nothing was granted under its row before that. */
  readonly isWhole: boolean;
}

/** A claimant as an accept hears it. */
export interface HeardClaimant extends Claimant {
  /** Pages of claims that have come. */
  readonly pages: number;
  /** Whether it has said all that it knows. */
  readonly hasSpoken: boolean;
}

/** One page of what a server claims. */
export interface Claims {
  /** The ask that it answers. */
  readonly nonce: string;
  readonly claimant: Claimant;
  /** At most MAX_CLAIMS, of each tag and period at most one. */
  readonly claims: readonly Claim[];
  /** Counted from 0. */
  readonly page: number;
  readonly isLast: boolean;
}

/**
 * `heard`: the page is in the store. `busy`: somebody else works on the store's row; send it again in a moment. `not-asked`:
 * no such ask stands in this store, and what was claimed for it is of no use.
 */
export type ClaimsAnswer = "busy" | "heard" | "not-asked";

/** What has been said, and which servers have rows. */
export interface Hearing {
  /** False: the ask was withdrawn, another one took its place once it was over, or it stands in an earlier state. */
  readonly isStanding: boolean;
  /** It stands without a look that was answered, or the store granted when it began and is refused now: it went back since. */
  readonly isEarlier: boolean;
  readonly nodes: readonly Pick<NodeRow, "address" | "id" | "instance" | "renewals">[];
  readonly claimants: readonly HeardClaimant[];
}

/** One look of an accept at what was said. */
export interface Look {
  /** Counted from 1. */
  readonly number: number;
  /** The last one that was answered; 0: none was. */
  readonly answered: number;
}

export type Asked =
  | { readonly outcome: "asked"; readonly hearing: Hearing }
  /** Another accept asks, for so long at most. */
  | { readonly outcome: "busy"; readonly forMs: number };

/** The claims that an accept is to take. */
export interface AskedClaims {
  readonly nonce: string;
  /** The last look that was answered, which the ask must have; 0: there was none. */
  readonly look: number;
  /** Also those that reach the end of a tag. */
  readonly isTrusted: boolean;
}

/** What an accept made of claims. */
export interface TakenClaims {
  /** Tags whose floors were raised to a claim, before the gap was added; of these the one that was raised most, and by how much. */
  readonly raised: number;
  readonly most: { readonly tag: string; readonly by: bigint } | undefined;
  /** Names that the store had lost, and now knows as deleted. */
  readonly lost: number;
  /** By id. */
  readonly claimants: readonly HeardClaimant[];
}

/**
 * Before an accept the servers are asked what they were granted, since the store may have lost it. The ask, and what is said, lie
 * beside the store's row: a store that is marked, or was loaded from a dump, takes both, and neither touches that row.
 *
 * INVARIANTS
 * 1. A claim is believed by the accept that asked for it alone, by the nonce, which is random. So nothing that was said to a
 *    store counts in a copy of it, in a history of before, or in another store. One ask stands at a time.
 * 2. A claim is in the store before its page is `heard`, and an accept takes all that were heard: whoever claims shares the
 *    store's row, which an accept has for itself. Nobody who claims waits for it (`busy`).
 * 3. None of this waits for a standby, or asks whether settings are safe. Nothing rests on claims but an accept, which asks.
 * 4. What was heard of a claimant stands, also when it runs again under its row and says less. Who had not said all then is what it
 *    says now.
 * 5. Claims are dropped with their ask: by the accept that takes them, when it is withdrawn, and by the next ask.
 * 6. A store may go back to a state in which the ask stands, and its claims lack what was granted since. What only the accept
 *    writes shows that: each look is written into the ask, over no ask that lacks an answered one, and the accept needs the last.
 *    A later state has them all. Then a server shows it that lost something, since it marks the store. So an ask has whether the
 *    store granted when it began, and one of a store that granted counts no more once that is refused. A store that was refused
 *    when the ask began granted nothing since.
 */
export interface ClaimStore {
  /**
   * Begins to ask, for `forMs` by the store's clock, at most ASK_MS; every poll answers the nonce (StorePart.ask) meanwhile. An ask
   * that is over gives way to the next one.
   */
  askForClaims(nonce: string, forMs: number): Promise<Asked>;
  /** What was said so far. Keeps the number of the look in an ask that has the answered one. */
  hearClaims(nonce: string, look: Look): Promise<Hearing>;
  /** Keeps claims that are above the floor of the tag's row, or of a period that the row is not in, or of a name without a row. */
  claim(claims: Claims): Promise<ClaimsAnswer>;
  /** Ends the ask, if it is this one, and drops what was said. */
  withdrawAsk(nonce: string): Promise<void>;
}

/** How long an ask stands that nobody ends. One that would stand for twice as long is from before the clock was set back. */
export const ASK_MS = 60_000;

/** Most claims of one page. */
export const MAX_CLAIMS = 1_000;
