// Which call is sent when. Pure: times are passed in, in milliseconds of one clock.

/** How calls are made. */
export interface Load {
  /** Calls a second, whether or not earlier ones are answered: an open loop. Undefined: a closed one. */
  readonly ratePerSecond: number | undefined;
  readonly maxInFlight: number;
  readonly maxCalls: number;
  readonly durationMs: number;
}

/**
 * INVARIANT: in an open loop, the time at which call number n is due is n / rate after the start, whatever happened to the
 * calls before it. Its latency counts from that time. So a server that stalls is charged for all calls that waited
 * meanwhile, also for those that were sent late, and for those that were never sent because the run ended first.
 */
export class Pacer {
  readonly #load: Load;
  readonly #startMs: number;
  #sent = 0;
  #inFlight = 0;

  constructor(load: Load, startMs: number) {
    this.#load = load;
    this.#startMs = startMs;
  }

  get sent(): number {
    return this.#sent;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** The next call may be sent now: the time it was due. Undefined: not now. */
  send(nowMs: number): number | undefined {
    if (this.isOver(nowMs) || this.#inFlight >= this.#load.maxInFlight) return undefined;
    const due = this.dueMs(nowMs);
    if (due > nowMs) return undefined;
    this.#sent += 1;
    this.#inFlight += 1;
    return due;
  }

  answered(): void {
    this.#inFlight -= 1;
  }

  /** When the next call is due. */
  dueMs(nowMs: number): number {
    const { ratePerSecond } = this.#load;
    if (ratePerSecond === undefined) return nowMs;
    return this.#startMs + (this.#sent * 1_000) / ratePerSecond;
  }

  isOver(nowMs: number): boolean {
    const { maxCalls, durationMs } = this.#load;
    return this.#sent >= maxCalls || nowMs >= this.#startMs + durationMs;
  }

  /** How much of the run is over: 0 … 1. */
  progress(nowMs: number): number {
    const { maxCalls, durationMs } = this.#load;
    const share = Math.max(this.#sent / maxCalls, (nowMs - this.#startMs) / durationMs);
    return Math.min(1, Math.max(0, share));
  }

  /** The times of calls that were due before the run ended and were never sent; each has waited since. */
  *unsent(endMs: number): Generator<number> {
    const { ratePerSecond, maxCalls, durationMs } = this.#load;
    if (ratePerSecond === undefined) return;
    const end = Math.min(endMs, this.#startMs + durationMs);
    for (let call = this.#sent; call < maxCalls; call += 1) {
      const due = this.#startMs + (call * 1_000) / ratePerSecond;
      if (due >= end) return;
      yield due;
    }
  }
}
