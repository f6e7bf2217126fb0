import type { Timers } from "@idmint/core";
import {
  type Claim,
  type Claimant,
  type ClaimsAnswer,
  type ClaimStore,
  MAX_CLAIMS,
  type VersionGuard,
} from "@idmint/core/server";
import { within } from "../call.ts";

export interface SpeakerPorts {
  readonly store: Pick<ClaimStore, "claim">;
  readonly guard: Pick<VersionGuard, "claims">;
  readonly claimant: () => Claimant;
  readonly timers: Timers;
  readonly storeTimeoutMs: number;
}

/** How long the store's row is left to whoever works on it, and how often one page is tried before the next poll. */
const BUSY_MS = 50;
const MAX_TRIES = 40;

/** What is said for one ask. */
interface Speech {
  readonly nonce: string;
  readonly pages: readonly (readonly Claim[])[];
  next: number;
}

/**
 * Says what this server was granted, when an accept asks for it: once for each ask, in pages, one after the other.
 *
 * INVARIANT: what is claimed is all that was granted up to the poll that showed the ask. What is granted later is in the store
 * that is to be accepted, above the floor that the accept finds.
 */
export class Speaker {
  readonly #ports: SpeakerPorts;
  #speech: Speech | undefined;
  #isSpeaking = false;

  constructor(ports: SpeakerPorts) {
    this.#ports = ports;
  }

  /** A poll was answered. `nonce`: of the ask that stands; undefined: nobody asks. */
  saw(nonce: string | undefined): void {
    if (this.#isSpeaking) return;
    if (nonce === undefined) {
      this.#speech = undefined;
      return;
    }
    if (this.#speech?.nonce !== nonce) this.#speech = { nonce, pages: this.#pages(), next: 0 };
    if (this.#speech.next < this.#speech.pages.length) void this.#speak(this.#speech);
  }

  /** In the order of their keys, as all speakers have it, so that no two wait for each other in a ring. At least one page. */
  #pages(): readonly (readonly Claim[])[] {
    const claims = [...this.#ports.guard.claims()].toSorted((a, b) =>
      a.tag === b.tag ? (a.period < b.period ? -1 : 1) : a.tag < b.tag ? -1 : 1,
    );
    const pages: (readonly Claim[])[] = [];
    for (let at = 0; at === 0 || at < claims.length; at += MAX_CLAIMS) {
      pages.push(claims.slice(at, at + MAX_CLAIMS));
    }
    return pages;
  }

  async #speak(speech: Speech): Promise<void> {
    this.#isSpeaking = true;
    try {
      while (speech.next < speech.pages.length) {
        // A page is said when the one before was heard.
        const answer = await this.#say(speech);
        // Whoever asked has what it wanted, or gave up.
        if (answer === "not-asked") speech.next = speech.pages.length;
        else if (answer === "heard") speech.next++;
        else return;
      }
    } catch {
      // The next poll that shows the ask goes on with the same page.
    } finally {
      this.#isSpeaking = false;
    }
  }

  async #say({ nonce, pages, next }: Speech): Promise<ClaimsAnswer> {
    const { store, claimant, timers, storeTimeoutMs } = this.#ports;
    const claims = pages[next] ?? [];
    const isLast = next === pages.length - 1;
    const said = { nonce, claimant: claimant(), claims, page: next, isLast };
    let answer: ClaimsAnswer = "busy";
    for (let tries = 0; tries < MAX_TRIES && answer === "busy"; tries++) {
      if (tries > 0) await new Promise<void>((resolve) => timers.after(BUSY_MS, resolve));
      answer = await within(() => store.claim(said), storeTimeoutMs, timers);
    }
    return answer;
  }
}
