import { type Clock, IdmintError, MAX_TEXT_AGE_MS } from "@idmint/core";
import type { TagContext } from "../tag-context.ts";
import { type IdSourceRequest, type KindFacts, kindFactsOf } from "./id-source.ts";

/** Share of the time after which servers are asked again, so that nobody has to wait for their answer. */
const ASK_AGAIN_SHARE = 0.5;
/** Ids that follow each other within that time are a burst; most of one between two looks at the clock. */
const BURST_MS = 1;
const MAX_STRIDE = 64;

/**
 * Whether ids of a tag may still be made here, without a server.
 *
 * INVARIANT: a server said of the tag that it issues, in answer to a request that was sent no longer than MAX_TEXT_AGE_MS ago: what
 * servers tell of the `effective_time` of a change rests on that. While no server answers, the time runs out.
 */
export class Confirmation {
  readonly #request: IdSourceRequest;
  readonly #context: TagContext;
  readonly #clock: Clock;
  readonly #maxAgeMs: number;
  #sentAtMs: number;
  #isAsking = false;
  #lookedAtMs = -Infinity;
  #stride = 1;
  /** Ids until the clock is looked at. */
  #left = 0;

  constructor(request: IdSourceRequest, context: TagContext) {
    this.#request = request;
    this.#context = context;
    this.#clock = context.clock;
    this.#sentAtMs = request.sentAtMs;
    this.#maxAgeMs = Math.min(MAX_TEXT_AGE_MS, context.maxAgeMs);
  }

  /** To be asked before each id. */
  get isOver(): boolean {
    if (--this.#left > 0) return false;
    const now = this.#clock.now();
    // In a burst the clock is not looked at for each id, since that would be a good part of its cost.
    this.#stride = now - this.#lookedAtMs < BURST_MS ? Math.min(2 * this.#stride, MAX_STRIDE) : 1;
    this.#lookedAtMs = now;
    const isOver = now - this.#sentAtMs >= this.#maxAgeMs;
    this.#left = isOver ? 0 : this.#stride;
    return isOver;
  }

  /** The tag may be another one now, or none. */
  doubt(): void {
    this.#request.onDoubt();
  }

  /** The age cannot be told any more. */
  expire(): void {
    this.#sentAtMs = -Infinity;
    this.#left = 0;
  }

  /** To be called about once a second, while somebody uses the tag. */
  keep(): void {
    const ageMs = this.#clock.now() - this.#sentAtMs;
    if (this.#isAsking || ageMs < this.#maxAgeMs * ASK_AGAIN_SHARE || ageMs >= this.#maxAgeMs)
      return;
    void this.#ask();
  }

  async #ask(): Promise<void> {
    const { tag, route, facts } = this.#request;
    const sentAtMs = this.#clock.now();
    this.#isAsking = true;
    try {
      const request = { tag, count: 1, after: 0n, instance: this.#context.worker.instance };
      await this.#context.endpoints.allocate(route, request, () => undefined);
      // It hands out segments now.
      this.doubt();
    } catch (thrown) {
      const error = IdmintError.from(thrown);
      const found = kindFactsOf(error);
      // `expire` may have come in between.
      if (found !== undefined && isSame(found, facts))
        this.#sentAtMs = Math.max(this.#sentAtMs, sentAtMs);
      else if (!error.retryable) this.doubt();
    } finally {
      this.#isAsking = false;
    }
  }
}

function isSame(one: KindFacts, other: KindFacts): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
