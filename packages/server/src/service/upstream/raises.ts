import type { Timers } from "@idmint/core";
import {
  type Raised,
  type RaiseRequest,
  type RaiseStore,
  storeUnavailable,
  storeWentBack,
  type VersionGuard,
} from "@idmint/core/server";
import { within } from "../call.ts";
import { type OnWentBack, refusalOf } from "./refusals.ts";

export interface RaisesPorts {
  readonly store: RaiseStore;
  readonly guard: VersionGuard;
  readonly timers: Timers;
  readonly storeTimeoutMs: number;
  /** Counts the histories of the store: an answer of an earlier one is not used. */
  readonly history: () => number;
  /** The store went back for this tag. */
  readonly onWentBack: OnWentBack;
}

/**
 * Raises the durable bounds of tags that count in Redis, and checks every answer against the version guard.
 *
 * INVARIANT: as with grants, what is answered here was given to nobody else: the answer came in time, in the history of
 * the store in which it was asked for, and its version is above all that had been seen then.
 */
export class Raises {
  readonly #ports: RaisesPorts;

  constructor(ports: RaisesPorts) {
    this.#ports = ports;
  }

  /** One attempt. Rejects with the refusals of the tag, or STORE_UNAVAILABLE when the outcome is unknown. */
  async raise(request: Omit<RaiseRequest, "seenVersion">): Promise<Raised> {
    const { store, guard, timers, storeTimeoutMs, history: historyNow, onWentBack } = this.#ports;
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
    if (guard.admitGrant(tag, seenVersion, answer)) return answer;
    const detail = `a raise has version ${answer.version}, and ${seenVersion} was seen before`;
    onWentBack(tag, detail);
    throw storeWentBack(detail, tag);
  }
}
