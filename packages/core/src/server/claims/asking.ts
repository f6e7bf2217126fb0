import { IdmintError } from "../../errors.ts";
import type { Clock, Timers } from "../../ports.ts";
import type { AuditNote } from "../audit/ports.ts";
import { storeUnavailable } from "../refusals.ts";
import type { AcceptStore } from "../store/store.ts";
import {
  ASK_TIMES,
  type AskedServer,
  askedServers,
  type AskTimes,
  createAskState,
  heard,
} from "./ask-state.ts";
import { ASK_MS, type ClaimStore, type Hearing, type TakenClaims } from "./ports.ts";

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

/**
 * Asks all servers what they were granted, waits for those that run, and accepts the store above all that they said.
 *
 * INVARIANT: nobody is waited for under a lock: servers go on polling and renewing while they are asked. An ask that is not
 * withdrawn ends by itself.
 */
export async function acceptAsking(
  { store, clock, timers, nonce, times = ASK_TIMES, isWanted = () => true }: AskingPorts,
  { gap, maxOfflineMs, by, newStore, trustClaims = false }: AcceptingOptions,
): Promise<AcceptReport> {
  const asked = await store.askForClaims(nonce, ASK_MS);
  if (asked.outcome === "busy") throw anotherAsks(asked.forMs);
  try {
    const state = createAskState(asked.hearing, clock.now(), times);
    for (;;) {
      await new Promise<void>((resolve) => timers.after(Math.min(LOOK_MS, times.leastMs), resolve));
      if (!heard(state, await hearingOf(store, nonce), clock.now())) break;
    }
    // failpoint: accept-asked
    if (!isWanted()) throw storeUnavailable("the store was accepted by somebody else meanwhile");
    const claims = { nonce, isTrusted: trustClaims };
    const accepted = await store.accept(gap, maxOfflineMs, by, newStore, claims);
    // failpoint: accept-done
    const { claimants, ...taken } = accepted.claims ?? NOTHING_TAKEN;
    return {
      tags: accepted.tags,
      claims: { ...taken, servers: askedServers(state, claimants) },
    };
  } finally {
    // An accept has ended it. What cannot be withdrawn is over in a minute.
    await store.withdrawAsk(nonce).catch(() => undefined);
  }
}

const NOTHING_TAKEN: TakenClaims = { raised: 0, most: undefined, lost: 0, claimants: [] };

/** Undefined: the store did not answer; the accept tells, if it still does not. */
async function hearingOf(store: ClaimStore, nonce: string): Promise<Hearing | undefined> {
  try {
    return await store.hearClaims(nonce);
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
