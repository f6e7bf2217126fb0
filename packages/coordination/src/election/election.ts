import { randomUUID } from "node:crypto";
import { checkInteger } from "../checks.ts";
import { asError, cancelled, CoordinationError } from "../errors.ts";
import { driftMs } from "../lease/lease-state.ts";
import { bounded } from "../redis/bounded.ts";
import { RedisNode } from "../redis/node.ts";
import { elapsedMs, nodeRuntime, pause, type Runtime } from "../time.ts";
import { type Ballot, redisBallot, type Verdict } from "./ballot.ts";
import { Leadership, type Mandate } from "./leadership.ts";
import { type ElectionOptions, type ElectionSettings, resolveOptions } from "./options.ts";

/** How long to stand. */
export interface CampaignOptions {
  /** Longest wait, in milliseconds, 0 to 86,400,000. Default: as long as it takes, until `signal` fires or `close`. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

/** One candidate of an election at one Redis. */
export interface Election extends AsyncDisposable {
  /**
   * Waits to be elected. A leader renews before others may take over, so it stays leader until it resigns, is silent for
   * `ttlMs`, or Redis forgets it. Fails with DEADLINE_EXCEEDED after `waitMs`, CALL_CANCELLED when the signal fires,
   * CLOSED after `close`, ELECTION_MISMATCH when others have another `ttlMs`, NODE_REFUSED when Redis answers with an error
   * that waiting does not mend, TOKEN_WENT_BACK when the source of terms answered one that was given before. While Redis
   * does not answer, it goes on trying.
   */
  readonly campaign: (options?: CampaignOptions) => Promise<Leadership>;
  /** Ends campaigns and closes the connection that was made here. A leader's time runs out. */
  readonly close: () => Promise<void>;
}

/** Makes a candidate. */
export function createElection(options: ElectionOptions): Election {
  const settings = resolveOptions(options, randomUUID());
  const node = new RedisNode(options.node, {}, settings);
  const candidate = new Candidate(redisBallot(node, settings), settings, nodeRuntime);
  const close = async (): Promise<void> => {
    candidate.close();
    await node.close();
  };
  return {
    campaign: (campaignOptions) => candidate.campaign(campaignOptions),
    close,
    [Symbol.asyncDispose]: close,
  };
}

export class Candidate {
  readonly #ballot: Ballot;
  readonly #settings: ElectionSettings;
  readonly #runtime: Runtime;
  readonly #closing = new AbortController();
  #highestTerm = 0n;
  #leader = "";

  constructor(ballot: Ballot, settings: ElectionSettings, runtime: Runtime) {
    this.#ballot = ballot;
    this.#settings = settings;
    this.#runtime = runtime;
  }

  async campaign({ waitMs, signal }: CampaignOptions = {}): Promise<Leadership> {
    const longestMs = checkInteger("waitMs", waitMs, {
      min: 0,
      max: 86_400_000,
      fallback: Number.POSITIVE_INFINITY,
    });
    const closing = this.#closing.signal;
    const either = signal === undefined ? closing : AbortSignal.any([closing, signal]);
    const what = `standing in election "${this.#settings.name}"`;
    const start = this.#runtime.now();
    for (;;) {
      if (closing.aborted) throw new CoordinationError("CLOSED", `${what}: it was closed`);
      if (either.aborted) throw cancelled(what, either);
      const result = await this.#stand(either);
      if (result instanceof Leadership) return result;
      const waitedMs = elapsedMs(start, this.#runtime.now());
      if (waitedMs + result.retryMs > longestMs) {
        const text = `${what} for ${longestMs} ms elected somebody else or nobody`;
        throw new CoordinationError("DEADLINE_EXCEEDED", text, { cause: result.error });
      }
      await pause(this.#runtime, result.retryMs, { what, signal: either }).catch(() => undefined);
    }
  }

  /** Ends campaigns. */
  close(): void {
    this.#closing.abort();
  }

  /** Asks once to be elected; otherwise says when to ask again. */
  async #stand(
    signal: AbortSignal,
  ): Promise<Leadership | { readonly retryMs: number; readonly error?: CoordinationError }> {
    const { name, candidate, ttlMs, nodeTimeoutMs, onEvent } = this.#settings;
    const owner = `${candidate}/${randomUUID()}`;
    try {
      const verdict = await this.#ask(owner, signal);
      if ("owner" in verdict) {
        onEvent({ type: "elected", election: name, term: verdict.term });
        return new Leadership(this.#ballot, verdict, this.#settings, this.#runtime);
      }
      return { retryMs: this.#retryMs(verdict) };
    } catch (thrown) {
      // It may have been elected and not have heard it; a cancelled call gives it up all the same. The connection keeps
      // commands in order, so this one comes before those of the next try.
      void this.#ballot.resign(owner, { timeoutMs: nodeTimeoutMs }).catch(() => undefined);
      const error = asError(thrown);
      if (error.code === "CANCELLED") return { retryMs: 0, error };
      if (!error.retryable) throw error;
      onEvent({ type: "campaign-failed", election: name, error });
      return { retryMs: (ttlMs / 10) * (0.5 + this.#runtime.random()), error };
    }
  }

  async #ask(
    owner: string,
    signal: AbortSignal,
  ): Promise<Mandate | Exclude<Verdict, { type: "elected" }>> {
    const { name, ttlMs, nodeTimeoutMs, termSource } = this.#settings;
    const limits = { timeoutMs: nodeTimeoutMs, signal };
    const askedAt = this.#runtime.now();
    const wanted = { floor: this.#highestTerm, isMinting: termSource === undefined };
    const verdict = await this.#ballot.campaign(owner, wanted, limits);
    if (verdict.type !== "elected") return verdict;
    let { term } = verdict;
    if (termSource !== undefined) {
      const late = AbortSignal.any([signal, AbortSignal.timeout(ttlMs)]);
      const what = `the source of terms of election "${name}"`;
      term = await bounded(what, termSource(name, late), { timeoutMs: ttlMs, signal });
      await this.#enter(owner, term, limits);
    }
    if (term <= this.#highestTerm) {
      const text = `term ${term} of election "${name}" is not above ${this.#highestTerm}`;
      throw new CoordinationError("TOKEN_WENT_BACK", text, { metadata: { election: name } });
    }
    // Only a term that was entered counts as seen.
    if (elapsedMs(askedAt, this.#runtime.now()) >= ttlMs - driftMs(ttlMs)) {
      const text = `being elected in "${name}" took longer than its ttl of ${ttlMs} ms`;
      throw new CoordinationError("NODE_UNAVAILABLE", text);
    }
    this.#highestTerm = term;
    return { owner, term, askedAt };
  }

  async #enter(
    owner: string,
    term: bigint,
    limits: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const { name } = this.#settings;
    if (typeof term !== "bigint" || term <= 0n) {
      const text = `the source of terms of election "${name}" must answer a bigint above 0`;
      throw new CoordinationError("TOKEN_WENT_BACK", text, { metadata: { election: name } });
    }
    if (await this.#ballot.enter(owner, term, limits)) return;
    const text = `the time of election "${name}" was over before its term was known`;
    throw new CoordinationError("NODE_UNAVAILABLE", text);
  }

  /** A bit after the leader's time or the settling is over, and each third of it: a leader may resign. */
  #retryMs(verdict: Exclude<Verdict, { type: "elected" }>): number {
    const { name, ttlMs, onEvent } = this.#settings;
    if (verdict.setBackMs > 0) {
      onEvent({ type: "clock-set-back", election: name, byMs: verdict.setBackMs });
    }
    if (verdict.type === "settling") {
      onEvent({ type: "settling", election: name, leftMs: verdict.leftMs });
    } else if (verdict.leader !== this.#leader) {
      this.#leader = verdict.leader;
      onEvent({ type: "following", election: name, leader: verdict.leader });
    }
    return Math.min(verdict.leftMs, ttlMs / 3) + 1 + (this.#runtime.random() * ttlMs) / 20;
  }
}
