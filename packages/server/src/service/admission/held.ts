import { answerBy, type Clock, type IdmintError, type Timers } from "@idmint/core";
import {
  beganToWait,
  createHeldState,
  createWaitingState,
  endedToWait,
  HELD_SLOT_MS,
  type HeldState,
  hold,
  mayAnswerNow,
  NARROW_STREAMS,
  releaseAll,
  released,
} from "@idmint/core/server";
import type { CallContext } from "../call.ts";

/** Refusals take at most a fiftieth of the time, and come at the latest after this time. */
const OPTIONS = { share: 0.02, maxMs: 4_000, maxHeld: 16_384 };
/** Share of the time for refusals whose callers cannot call again at once, since their connections are narrow. */
const NARROW_SHARE = 0.5;

type Refuse = () => void;
const NOBODY: ReadonlySet<string> = new Set();

/** Answers refusals at a bounded rate: the shell around core's held-state.ts. */
export class HeldRefusals {
  readonly #ports: { readonly clock: Clock; readonly timers: Timers };
  readonly #costMs: () => number;
  readonly #state: HeldState<Refuse> = createHeldState(OPTIONS);
  readonly #callers = createWaitingState(OPTIONS.maxHeld);
  /** Nothing is answered meanwhile, but for refusals whose time has come. */
  isPaused = false;
  #isTicking = false;
  #isStopped = false;
  #shed = 0;
  #narrow: ReadonlySet<string> = NOBODY;

  constructor(ports: { readonly clock: Clock; readonly timers: Timers }, costMs: () => number) {
    this.#ports = ports;
    this.#costMs = costMs;
  }

  /** Refusals for overload that are held. */
  get shed(): number {
    return this.#shed;
  }

  /** How many are held of each caller. */
  get callers(): ReadonlyMap<string, number> {
    return this.#callers.callers;
  }

  /** From now on the connections of these callers are narrow: what piled up before only keeps new calls from coming. */
  narrowed(callers: ReadonlySet<string>): void {
    this.#narrow = callers;
  }

  /** Throws the error, or rejects with it when it is time. */
  refuse(call: Pick<CallContext, "caller" | "deadline">, error: IdmintError): Promise<never> {
    const now = this.#ports.clock.now();
    if (this.#isStopped) throw error;
    if (!this.isPaused && mayAnswerNow(this.#state, now, this.#costMs())) throw error;
    const { promise, reject } = Promise.withResolvers<never>();
    const shed = error.reason === "OVERLOADED" ? 1 : 0;
    const { caller } = call;
    const refuse = (): void => {
      this.#shed -= shed;
      endedToWait(this.#callers, caller);
      reject(error);
    };
    this.#shed += shed;
    beganToWait(this.#callers, caller);
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
      const now = this.#ports.clock.now();
      const share = this.isPaused ? 0 : this.#isOfNarrow ? NARROW_SHARE : OPTIONS.share;
      for (const refuse of released(this.#state, now, this.#costMs(), share)) refuse();
      this.#tick();
    });
  }

  /** Whether most of what is held piled up before connections became narrow. */
  get #isOfNarrow(): boolean {
    let pile = 0;
    for (const caller of this.#narrow) {
      pile += Math.max(0, (this.#callers.callers.get(caller) ?? 0) - NARROW_STREAMS);
    }
    return pile * 2 > this.#state.count;
  }
}
