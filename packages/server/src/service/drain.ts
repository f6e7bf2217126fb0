import type { IdmintError, Timers } from "@idmint/core";
import {
  causeOf,
  type DrainCause,
  type DrainEffect,
  type DrainEvent,
  type DrainState,
  leavingOf,
  onDrainEvent,
  SERVING,
} from "./drain-state.ts";
import type { Emit } from "./events.ts";

/** The doors that calls come through. */
export interface DrainedDoor {
  /** Tells callers to go, spread over that time, those too who come meanwhile. */
  leave(forMs: number): void;
  /** Calls are refused from now on: tells the callers who are left. */
  refuse(): void;
  /** Calls are taken again: nobody else is told to go. */
  stay(): void;
  /** Fulfils when no call is in flight, or after `boundMs`. */
  idle(boundMs: number): Promise<void>;
  /** Tells whether calls are wanted, after that changed. */
  update(): void;
}

export interface DrainPorts {
  /** This server, as commands name it. */
  readonly server: string;
  /** What holds ids. */
  readonly directory: () => {
    drain(error: IdmintError): Promise<{ readonly givenBack: number; readonly wasted: number }>;
    resume(): void;
  };
  readonly refusal: () => IdmintError;
  readonly drainDelayMs: number;
  readonly drainTimeMs: number;
  readonly timers: Timers;
  readonly emit: Emit;
}

/** Sends callers away, and refuses calls, when an operator drained this server, or it stops: the shell around drain-state.ts. */
export class Drain {
  /** Why calls are refused; every call asks. */
  cause: DrainCause | undefined;
  /** Why callers are not wanted; before they are refused too. */
  leaving: DrainCause | undefined;
  readonly #ports: DrainPorts;
  #state: DrainState = SERVING;
  /** Undefined while the server starts: nobody has called it then. */
  #door: DrainedDoor | undefined;
  #cancelDelay: (() => void) | undefined;
  readonly #ended = Promise.withResolvers<void>();

  constructor(ports: DrainPorts) {
    this.#ports = ports;
  }

  /** The server listens. */
  open(door: DrainedDoor): void {
    this.#door = door;
  }

  /** What the store says of this server. */
  told(isDraining: boolean): void {
    this.#on({ type: "told", isDraining });
  }

  /** The server stops; fulfils when calls are refused for good. */
  stop(): Promise<void> {
    this.#on({ type: "stop" });
    return this.#ended.promise;
  }

  /** Refuses calls now, and not when `drain_delay` is over. False: they are refused already, or not at all. */
  hurry(): boolean {
    const { phase, round } = this.#state;
    this.#on({ type: "delayed", round });
    return phase === "unready";
  }

  /** For people: what an operator did, and the way back; empty when nobody drained it. */
  get reason(): string {
    if (this.leaving !== "drained") return "";
    return `an operator drained this server; idmint node undrain ${this.#ports.server} ends that`;
  }

  #on(event: DrainEvent): void {
    const [state, effects] = onDrainEvent(this.#state, event);
    this.#state = state;
    this.cause = causeOf(state);
    this.leaving = leavingOf(state);
    if (state.phase !== "unready") this.#cancelDelay?.();
    for (const effect of effects) this.#run(effect);
  }

  #run(effect: DrainEffect): void {
    const { directory, server, emit } = this.#ports;
    switch (effect.type) {
      case "announce":
        this.#announce(effect.round);
        break;
      case "leave":
        emit({ type: "operator-drain", server, phase: "leaving" });
        this.#door?.refuse();
        void this.#leave(effect.round);
        break;
      case "rest":
        void this.#rest();
        break;
      case "end":
        this.#door?.refuse();
        this.#ended.resolve();
        break;
      case "return":
        if (effect.hasRested) directory().resume();
        emit({ type: "operator-drain", server, phase: "serving" });
        this.#door?.stay();
        this.#door?.update();
        break;
    }
  }

  #announce(round: number): void {
    const { drainDelayMs, timers, server, emit } = this.#ports;
    const delayMs = this.#door === undefined ? 0 : drainDelayMs;
    this.#door?.leave(delayMs);
    this.#door?.update();
    if (delayMs === 0) {
      this.#on({ type: "delayed", round });
      return;
    }
    if (this.leaving === "drained") emit({ type: "operator-drain", server, phase: "unready" });
    this.#cancelDelay = timers.after(delayMs, () => this.#on({ type: "delayed", round }));
  }

  async #leave(round: number): Promise<void> {
    await this.#door?.idle(this.#ports.drainTimeMs);
    this.#on({ type: "idle", round });
  }

  async #rest(): Promise<void> {
    const { directory, refusal, server, emit } = this.#ports;
    const { givenBack, wasted } = await directory().drain(refusal());
    emit({ type: "operator-drain", server, phase: "resting", givenBack, wasted });
  }
}
