import { IdmintError } from "../../errors.ts";
import type { Clock, Timers } from "../../ports.ts";
import type { AuditNote } from "../audit/ports.ts";
import { storeUnavailable } from "../refusals.ts";
import type { AcceptStore } from "../store/store.ts";
import {
  ASK_TIMES,
  type AskedServer,
  askedServers,
  type AskState,
  type AskTimes,
  createAskState,
  heard,
} from "./ask-state.ts";
import { ASK_MS, type ClaimStore, type Hearing, type Look, type TakenClaims } from "./ports.ts";

/** How an accept is made. */
export interface AcceptingOptions {
  readonly gap: bigint;
  readonly maxOfflineMs?: number | null | undefined;
  readonly by?: AuditNote | undefined;
  readonly newStore?: boolean;
  /** Also claims that reach the end of a tag are taken. */
  readonly trustClaims?: boolean;
}

export interface AskingPorts {
  readonly store: AcceptStore & ClaimStore;
  readonly clock: Clock;
  readonly timers: Timers;
  /** A random name that nobody can guess or use again. */
  readonly nonce: string;
  /** Default: ASK_TIMES. */
  readonly times?: AskTimes | undefined;
  /** Whether the store still has to be accepted, once servers were heard. Default: true. */
  readonly isWanted?: () => boolean;
}

/** What an accept did. */
export interface AcceptReport {
  readonly tags: number;
  readonly claims: Omit<TakenClaims, "claimants"> & Servers;
}

interface Servers {
  readonly servers: readonly AskedServer[];
}

const LOOK_MS = 250;
/** How often servers are asked in all, when the store goes back meanwhile. */
const MAX_ASKS = 4;

/**
 * Asks all servers what they were granted, waits for those that run, and accepts the store above all that they said.
 *
 * INVARIANTS
 * 1. Nobody is waited for under a lock: servers go on polling and renewing while they are asked. An ask that is not withdrawn
 *    ends by itself.
 * 2. What was said counts while nothing is lost that was granted after it. So a store that goes back to a state in which the ask
 *    stands, with or without claims, is asked anew under another nonce, which all answer with all that they know by then. Each
 *    look finds the one before, or it went back; the accept needs the last one. A state of after the last look is known by who
 *    lost something: that one marks the store at its next poll, and a store that granted when it was asked is asked anew once it
 *    is refused. The accept may come before that poll. So it comes two polls after a look that took longer than STEADY_MS, unless
 *    looks go on like that. What it cannot know is that the store went back to a state of less than STEADY_MS ago, a moment
 *    before it.
 */
export async function acceptAsking(
  ports: AskingPorts,
  { gap, maxOfflineMs, by, newStore, trustClaims = false }: AcceptingOptions,
): Promise<AcceptReport> {
  const { store, isWanted = () => true } = ports;
  const nonces: string[] = [];
  try {
    const { nonce, state, look } = await heardAll(ports, nonces);
    // failpoint: accept-asked
    if (!isWanted()) throw storeUnavailable("the store was accepted by somebody else meanwhile");
    const claims = { nonce, look, isTrusted: trustClaims };
    const accepted = await store.accept(gap, maxOfflineMs, by, newStore, claims);
    // failpoint: accept-done
    const { claimants, ...taken } = accepted.claims ?? NOTHING_TAKEN;
    return {
      tags: accepted.tags,
      claims: { ...taken, servers: askedServers(state, claimants) },
    };
  } finally {
    // An accept has ended it. What cannot be withdrawn is over in a minute.
    await withdraw(store, nonces).catch(() => undefined);
  }
}

const NOTHING_TAKEN: TakenClaims = { raised: 0, most: undefined, lost: 0, claimants: [] };

/** What was heard, and by which look. */
interface Heard {
  readonly nonce: string;
  readonly state: AskState;
  readonly look: number;
}

/** `nonces`: of the asks that were begun. */
async function heardAll(ports: AskingPorts, nonces: string[]): Promise<Heard> {
  for (let asks = 0; asks < MAX_ASKS; asks++) {
    // A store that went back may have any of them.
    await withdraw(ports.store, nonces);
    const nonce = asks === 0 ? ports.nonce : `${ports.nonce}.${asks}`;
    const heardOnce = await hear(ports, nonce, nonces);
    if (heardOnce !== undefined) return heardOnce;
  }
  throw storeUnavailable(
    "the store went back, or did not answer for seconds, each time that servers were asked; try again when nobody works on it",
  );
}

async function withdraw(store: ClaimStore, nonces: readonly string[]): Promise<void> {
  for (const nonce of nonces) await store.withdrawAsk(nonce);
}

/** Asks once. Undefined: the store went back since, or may have. */
async function hear(
  { store, clock, timers, times = ASK_TIMES }: AskingPorts,
  nonce: string,
  nonces: string[],
): Promise<Heard | undefined> {
  const askedAt = clock.now();
  const asked = await store.askForClaims(nonce, ASK_MS);
  if (asked.outcome === "busy") throw anotherAsks(asked.forMs);
  nonces.push(nonce);
  const state = createAskState(asked.hearing, clock.now(), times, askedAt);
  for (let number = 1, answered = 0; ; number++) {
    await new Promise<void>((resolve) => timers.after(Math.min(LOOK_MS, times.leastMs), resolve));
    const sentAt = clock.now();
    const hearing = await hearingOf(store, nonce, { number, answered });
    const next = heard(state, hearing, clock.now(), sentAt);
    if (next === "anew") return undefined;
    if (hearing !== undefined) answered = number;
    if (next === "done") return { nonce, state, look: answered };
  }
}

/** Undefined: the store did not answer; the accept tells, if it still does not. */
async function hearingOf(
  store: ClaimStore,
  nonce: string,
  look: Look,
): Promise<Hearing | undefined> {
  try {
    return await store.hearClaims(nonce, look);
  } catch (thrown) {
    const error = IdmintError.from(thrown);
    if (error.retryable) return undefined;
    throw error;
  }
}

function anotherAsks(forMs: number): IdmintError {
  const seconds = Math.ceil(forMs / 1_000);
  return new IdmintError(
    "STORE_UNAVAILABLE",
    `another accept of this store is under way; look with idmint store status whether it is still needed, or try again in ${seconds} s, when that one is over at the latest`,
    { retryAfterMs: forMs },
  );
}
