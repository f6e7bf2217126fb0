import type { Clock, Timers } from "@idmint/core";
import { beginLeave, type LeaveState, lookAtLeave } from "./leave-state.ts";

/** How often connections are told to go, while their time runs. */
const LOOK_MS = 50;

/** A connection, as this file sees it. */
export interface Leaver {
  /** Asks for no further calls on it, and ends it when those that run have ended. */
  leave(): void;
}

/** Tells the connections of a door to go, each of them once: the shell around leave-state.ts. */
export class Leave {
  readonly #clock: Clock;
  readonly #timers: Timers;
  /** Those that were not told, in the order of their arrival. */
  readonly #waiting = new Set<Leaver>();
  #state: LeaveState | undefined;
  #cancel: (() => void) | undefined;

  constructor({ clock, timers }: { readonly clock: Clock; readonly timers: Timers }) {
    this.#clock = clock;
    this.#timers = timers;
  }

  /** A connection is there. To be told by what is answered when it is gone. */
  add(connection: Leaver): () => void {
    this.#waiting.add(connection);
    return () => this.#waiting.delete(connection);
  }

  /**
   * Tells all connections within a time, those too that come meanwhile. Without a time nobody is told: each hears of it with its
   * first refusal, so that they do not all come back at once, and those of operators stay.
   */
  begin(forMs: number): void {
    this.stop();
    if (forMs === 0) return;
    this.#state = beginLeave(this.#clock.now(), forMs);
    this.#lookSoon();
  }

  /** The time is over: tells those that are left. */
  finish(): void {
    if (this.#state !== undefined) this.end();
  }

  /** Tells all that are left. */
  end(): void {
    this.stop();
    this.#tell(this.#waiting.size);
  }

  /** Tells nobody else. */
  stop(): void {
    this.#cancel?.();
    this.#state = undefined;
  }

  #lookSoon(): void {
    this.#cancel = this.#timers.after(LOOK_MS, () => {
      if (this.#state === undefined) return;
      const [state, count] = lookAtLeave(this.#state, this.#clock.now(), this.#waiting.size);
      this.#state = state;
      this.#tell(count);
      // Whoever comes now is told when calls are refused: a connection that ends at once would only be made again.
      if (state.lookedAt < state.endsAt) this.#lookSoon();
    });
  }

  #tell(count: number): void {
    let left = count;
    for (const connection of this.#waiting) {
      if (left-- <= 0) return;
      this.#waiting.delete(connection);
      connection.leave();
    }
  }
}
