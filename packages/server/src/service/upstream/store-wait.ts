import { backoffMs, type Clock, IdmintError, type Random, type Timers } from "@idmint/core";
import type { Emit } from "../events.ts";

export interface StoreWaitPorts {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly emit: Emit;
}

/**
 * How long a start waits for the store. On a machine that is busy, or beside a database that starts too, a store answers
 * late; a process that ends then has to be started again by somebody, and takes longer.
 *
 * INVARIANTS
 * - What another attempt cannot mend ends the start at once: a wrong password, a missing schema, unsafe settings.
 * - No attempt begins after the bound, or after the start was told to end.
 */
export class StoreWait {
  readonly #ports: StoreWaitPorts;
  readonly #until: number;
  readonly #signal: AbortSignal | undefined;

  constructor(ports: StoreWaitPorts, waitMs: number, signal?: AbortSignal) {
    this.#ports = ports;
    this.#until = ports.clock.now() + waitMs;
    this.#signal = signal;
  }

  /** The first answer. Rejects with the last failure when the time is over, and with CALL_CANCELLED when the start is to end. */
  async of<T>(attempt: () => Promise<T>): Promise<T> {
    const { clock, random, emit } = this.#ports;
    for (let failures = 1; ; failures++) {
      this.#assertWanted();
      try {
        return await attempt();
      } catch (thrown) {
        const error = IdmintError.from(thrown);
        const leftMs = this.#until - clock.now();
        if (!error.retryable || leftMs <= 0) throw thrown;
        this.#assertWanted();
        const retryInMs = Math.min(backoffMs(failures, random), leftMs);
        emit({ type: "store-awaited", error, retryInMs, leftMs });
        await this.#pause(retryInMs);
      }
    }
  }

  #assertWanted(): void {
    if (this.#signal?.aborted !== true) return;
    throw new IdmintError("CALL_CANCELLED", "told to stop while it started");
  }

  async #pause(ms: number): Promise<void> {
    const over = Promise.withResolvers<void>();
    const cancel = this.#ports.timers.after(ms, over.resolve);
    const end = (): void => over.resolve();
    this.#signal?.addEventListener("abort", end);
    await over.promise;
    cancel();
    this.#signal?.removeEventListener("abort", end);
  }
}
