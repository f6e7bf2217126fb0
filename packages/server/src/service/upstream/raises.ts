import { segmentNotReady, type Timers } from "@idmint/core";
import {
  type Raised,
  type RaiseRequest,
  type RaiseStore,
  storeUnavailable,
  storeWentBack,
  type VersionGuard,
} from "@idmint/core/server";
import { within } from "../call.ts";
import { type OnBelow, type OnWentBack, refusalOf } from "./refusals.ts";

export interface RaisesPorts {
  readonly store: RaiseStore;
  readonly guard: VersionGuard;
  readonly timers: Timers;
  readonly storeTimeoutMs: number;
  /** Counts the histories of the store: an answer of an earlier one is not used. */
  readonly history: () => number;
  /** The store went back for this tag. */
  readonly onWentBack: OnWentBack;
  /** The tag's floor is below what was granted here before it was accepted. */
  readonly onBelow: OnBelow;
}

/**
 * Raises the durable bounds of tags that count in Redis, and checks every answer against the version guard.
 *
 * INVARIANTS
 * 1. As with grants, what is answered here was given to nobody else: the answer came in time, in the history of the store
 *    in which it was asked for, its version is above all that had been seen then, and its ids are above those of earlier
 *    raises.
 * 2. No tag is in two raises at once: a new start may want one while the maximum is being raised, and an answer that was
 *    overtaken would look like a store that went back.
 */
export class Raises {
  readonly #ports: RaisesPorts;
  /** The end of the last raise of each tag that is asked for or waits. */
  readonly #ends = new Map<string, Promise<void>>();

  constructor(ports: RaisesPorts) {
    this.#ports = ports;
  }

  /** One attempt. Rejects with the refusals of the tag, or STORE_UNAVAILABLE when the outcome is unknown. */
  async raise(request: Omit<RaiseRequest, "seenVersion">): Promise<Raised> {
    const { tag } = request;
    const earlier = this.#ends.get(tag);
    const { promise: end, resolve } = Promise.withResolvers<void>();
    this.#ends.set(tag, end);
    try {
      if (earlier !== undefined) await earlier;
      return await this.#ask(request);
    } finally {
      if (this.#ends.get(tag) === end) this.#ends.delete(tag);
      resolve();
    }
  }

  async #ask(request: Omit<RaiseRequest, "seenVersion">): Promise<Raised> {
    const { store, guard, timers, storeTimeoutMs, onWentBack, onBelow } = this.#ports;
    const { history: historyNow } = this.#ports;
    const { tag } = request;
    const history = historyNow();
    const seenVersion = guard.seen(tag);
    const answer = await within(
      () => store.raise({ ...request, seenVersion }),
      storeTimeoutMs,
      timers,
    );
    if (history !== historyNow()) throw storeUnavailable("the store was accepted anew meanwhile");
    if (answer.outcome === "refused") throw refusalOf(answer, onWentBack);
    const { before, floor: last, epoch, version } = answer;
    const isAbove = guard.admitGrant(tag, seenVersion, answer);
    const ids = { epoch, first: before + 1n, last, period: "" };
    const verdict = isAbove ? guard.admitIds(tag, ids) : "again";
    if (verdict === "new") return answer;
    if (verdict === "below") {
      onBelow(tag, ids);
      throw segmentNotReady(tag, 100);
    }
    const detail = isAbove
      ? `a raise begins at ${before}, which is below an earlier one of this server`
      : `a raise has version ${version}, and ${seenVersion} was seen before`;
    onWentBack(tag, detail);
    throw storeWentBack(detail, tag);
  }
}
