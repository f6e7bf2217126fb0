import type { Clock, Timers } from "@idmint/core";

/** Runs `turn` again and again, from `periodMs` after `start` until `stop`: one at a time, and one in each period. */
export class Turns {
  readonly #turn: () => Promise<void>;
  readonly #periodMs: number;
  readonly #ports: { readonly clock: Clock; readonly timers: Timers };
  #isStopped = false;
  #cancelTimer: (() => void) | undefined;

  /** `turn` never rejects. */
  constructor(
    turn: () => Promise<void>,
    periodMs: number,
    ports: { readonly clock: Clock; readonly timers: Timers },
  ) {
    this.#turn = turn;
    this.#periodMs = periodMs;
    this.#ports = ports;
  }

  start(): void {
    this.#later(this.#periodMs);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  #later(delayMs: number): void {
    if (this.#isStopped) return;
    this.#cancelTimer = this.#ports.timers.after(delayMs, () => void this.#once());
  }

  async #once(): Promise<void> {
    const { clock } = this.#ports;
    const startedAt = clock.now();
    await this.#turn();
    this.#later(Math.max(0, this.#periodMs - (clock.now() - startedAt)));
  }
}
