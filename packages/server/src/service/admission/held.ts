import { answerBy, type Clock, type IdmintError, type Timers } from "@idmint/core";
import {
  createHeldState,
  HELD_SLOT_MS,
  type HeldState,
  hold,
  mayAnswerNow,
  releaseAll,
  released,
} from "@idmint/core/server";
import type { CallContext } from "../call.ts";

/** Refusals take at most an eighth of the time, and come at the latest after this time. */
const OPTIONS = { share: 0.125, maxMs: 4_000, maxHeld: 16_384 };

type Refuse = () => void;

/** Answers refusals at a bounded rate: the shell around core's held-state.ts. */
export class HeldRefusals {
  readonly #ports: { readonly clock: Clock; readonly timers: Timers };
  readonly #costMs: () => number;
  readonly #state: HeldState<Refuse> = createHeldState(OPTIONS);
  #isTicking = false;
  #isStopped = false;
  #shed = 0;

  constructor(ports: { readonly clock: Clock; readonly timers: Timers }, costMs: () => number) {
    this.#ports = ports;
    this.#costMs = costMs;
  }

  /** Refusals for overload that are held. */
  get shed(): number {
    return this.#shed;
  }

  /** Throws the error, or rejects with it when it is time. */
  refuse(call: Pick<CallContext, "deadline">, error: IdmintError): Promise<never> {
    const now = this.#ports.clock.now();
    if (this.#isStopped || mayAnswerNow(this.#state, now, this.#costMs())) throw error;
    const { promise, reject } = Promise.withResolvers<never>();
    const shed = error.reason === "OVERLOADED" ? 1 : 0;
    const refuse = (): void => {
      this.#shed -= shed;
      reject(error);
    };
    this.#shed += shed;
    hold(this.#state, refuse, answerBy(now, call), now)?.();
    this.#tick();
    return promise;
  }

  stop(): void {
    this.#isStopped = true;
    for (const refuse of releaseAll(this.#state)) refuse();
  }

  #tick(): void {
    if (this.#isTicking || this.#state.count === 0) return;
    this.#isTicking = true;
    this.#ports.timers.after(HELD_SLOT_MS, () => {
      this.#isTicking = false;
      for (const refuse of released(this.#state, this.#ports.clock.now(), this.#costMs())) refuse();
      this.#tick();
    });
  }
}
