import type { IdmintError } from "@idmint/core";
import {
  causeOf,
  type DrainCause,
  type DrainEffect,
  type DrainEvent,
  type DrainState,
  onDrainEvent,
  SERVING,
} from "./drain-state.ts";
import type { Emit } from "./events.ts";

/** The door that calls come through. */
export interface DrainedDoor {
  /** Fulfils when no call is in flight, or after `boundMs`. */
  idle(boundMs: number): Promise<void>;
  /** Tells whether calls are taken, after that changed. */
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
  readonly drainTimeMs: number;
  readonly emit: Emit;
}

/** Refuses calls when an operator drained this server, or it stops: the shell around drain-state.ts. */
export class Drain {
  /** Why calls are refused; every call asks. */
  cause: DrainCause | undefined;
  readonly #ports: DrainPorts;
  #state: DrainState = SERVING;
  /** Undefined while the server starts: nobody has called it then. */
  #door: DrainedDoor | undefined;

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

  /** The server stops: from now on calls are refused for good. */
  stop(): void {
    this.#on({ type: "stop" });
  }

  /** For people: what an operator did, and the way back; empty when nobody drained it. */
  get reason(): string {
    if (this.cause !== "drained") return "";
    return `an operator drained this server; idmint node undrain ${this.#ports.server} ends that`;
  }

  #on(event: DrainEvent): void {
    const [state, effects] = onDrainEvent(this.#state, event);
    this.#state = state;
    this.cause = causeOf(state);
    for (const effect of effects) this.#run(effect);
  }

  #run(effect: DrainEffect): void {
    const { directory, server, emit } = this.#ports;
    switch (effect.type) {
      case "leave":
        emit({ type: "operator-drain", server, phase: "leaving" });
        this.#door?.update();
        void this.#leave(effect.round);
        break;
      case "rest":
        void this.#rest();
        break;
      case "return":
        if (effect.hasRested) directory().resume();
        emit({ type: "operator-drain", server, phase: "serving" });
        this.#door?.update();
        break;
    }
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
