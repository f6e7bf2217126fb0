import {
  BurstEnd,
  CALM_STRIDE,
  type Clock,
  IdmintError,
  MAX_TEXT_AGE_MS,
  type Reason,
  strideAfter,
} from "@idmint/core";
import type { TagContext } from "../tag-context.ts";
import { type IdSourceRequest, type KindFacts, kindFactsOf } from "./id-source.ts";

/** Shares of the time between which servers are asked again, so that nobody has to wait for their answer, nor many ask at once. */
const ASK_AGAIN_SHARES = [0.4, 0.6] as const;
/** From a failed ask to the next one, as a share of the time. */
const RETRY_SHARE = 0.02;
/** Refusals that speak of the tag, or of who asks. Any other says nothing, and the time goes on. */
const SPEAKS_OF_TAG: ReadonlySet<Reason> = new Set([
  "ISSUING_STOPPED",
  "PERMISSION_DENIED",
  "STORE_EPOCH_CHANGED",
  "TAG_NOT_FOUND",
  "TAG_PAUSED",
  "UNAUTHENTICATED",
  "WRONG_KIND",
]);
/** Most ids of a burst from one look at the clock to the next. */
const MAX_STRIDE = 64;

/**
 * Whether ids of a tag may still be made here, without a server.
 *
 * INVARIANT: a server said of the tag that it issues, in answer to a request that was sent no longer than MAX_TEXT_AGE_MS ago: what
 * servers tell of the `effective_time` of a change rests on that. While no server answers, the time runs out. The clock says so
 * before each id, except in a burst: there after MAX_STRIDE ids at most, and as soon as it is over (BurstEnd).
 */
export class Confirmation {
  readonly #request: IdSourceRequest;
  readonly #context: TagContext;
  readonly #clock: Clock;
  readonly #maxAgeMs: number;
  #sentAtMs: number;
  #askAtMs: number;
  #isAsking = false;
  #lookedAtMs = -Infinity;
  #stride = CALM_STRIDE;
  /** Ids until the clock is looked at, that one included. */
  #left = 0;
  readonly #burst: BurstEnd;

  constructor(request: IdSourceRequest, context: TagContext) {
    this.#request = request;
    this.#context = context;
    this.#clock = context.clock;
    this.#sentAtMs = request.sentAtMs;
    this.#maxAgeMs = Math.min(MAX_TEXT_AGE_MS, context.maxAgeMs);
    this.#askAtMs = this.#sentAtMs + this.#askAgainMs();
    this.#burst = new BurstEnd(context.ports, () => (this.#left = 0));
  }

  /** To be asked once before each id. */
  get isOver(): boolean {
    if (--this.#left > 0) return false;
    const now = this.#clock.now();
    this.#stride = strideAfter(this.#stride, now - this.#lookedAtMs, MAX_STRIDE);
    this.#lookedAtMs = now;
    const isOver = now - this.#sentAtMs >= this.#maxAgeMs;
    this.#left = isOver ? 0 : this.#stride;
    if (this.#left > 1) this.#burst.set();
    return isOver;
  }

  /** The tag may be another one now, or none. */
  doubt(): void {
    this.#request.onDoubt();
  }

  /** The age cannot be told any more. */
  expire(): void {
    this.#sentAtMs = -Infinity;
    this.#askAtMs = -Infinity;
    this.#left = 0;
  }

  /** To be called about once a second, while somebody uses the tag. */
  keep(): void {
    if (!this.#isAsking && this.#clock.now() >= this.#askAtMs) void this.#ask();
  }

  close(): void {
    this.#burst.cancel();
  }

  #askAgainMs(): number {
    const [least, most] = ASK_AGAIN_SHARES;
    return this.#maxAgeMs * (least + (most - least) * this.#context.ports.random());
  }

  async #ask(): Promise<void> {
    const { tag, route, facts } = this.#request;
    const before = this.#sentAtMs;
    const sentAtMs = this.#clock.now();
    this.#isAsking = true;
    this.#askAtMs = sentAtMs + this.#maxAgeMs * RETRY_SHARE;
    try {
      const request = { tag, count: 1, after: 0n, instance: this.#context.worker.instance };
      await this.#context.endpoints.allocate(route, request, () => undefined);
      // It hands out segments now.
      this.doubt();
    } catch (thrown) {
      const error = IdmintError.from(thrown);
      const found = kindFactsOf(error);
      if (found === undefined || !isSame(found, facts)) {
        if (SPEAKS_OF_TAG.has(error.reason)) this.doubt();
      } else if (before === this.#sentAtMs) {
        // Otherwise `expire` came in between, and how old the answer is cannot be told.
        this.#sentAtMs = sentAtMs;
        this.#askAtMs = sentAtMs + this.#askAgainMs();
      }
    } finally {
      this.#isAsking = false;
    }
  }
}

function isSame(one: KindFacts, other: KindFacts): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
