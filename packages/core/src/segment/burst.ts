import type { Timers } from "../ports.ts";

/** Looks at the clock that follow each other within this many milliseconds are of one burst. */
const BURST_MS = 1;
/**
 * Seven steps below 1: before that each id looks at the clock, since a timer costs more than as many looks. All strides are whole
 * numbers, as `limit` then is for V8, by which every id goes.
 */
export const CALM_STRIDE = -6;

/** After how many ids the clock is looked at again; 1 and less: before the next one. To be asked at each look. */
export function strideAfter(stride: number, sinceLookMs: number, most: number): number {
  if (sinceLookMs >= BURST_MS) return CALM_STRIDE;
  return stride < 1 ? stride + 1 : Math.min(most, stride * 2);
}

interface BurstPorts {
  readonly timers: Timers;
  readonly quietTimers?: Timers;
}

/**
 * When the ids of a burst must look at the clock again. In a burst it is looked at after some ids only, since that would be a good part
 * of their cost. What is left until the next look when a burst ends may be issued much later, so it must not be left.
 *
 * INVARIANT: while ids may be issued without a look, one timer waits, and never two. It was set no later than the last look was, so in
 * a process whose timers run, no id is issued later than BURST_MS after a look that allowed it, and what timers are late by.
 */
export class BurstEnd {
  readonly #ports: BurstPorts;
  readonly #lookAgain: () => void;
  #cancel: (() => void) | undefined;

  /** `lookAgain` has the next id look at the clock; ids may be issued without a look only after another `set`. */
  constructor(ports: BurstPorts, lookAgain: () => void) {
    this.#ports = ports;
    this.#lookAgain = lookAgain;
  }

  /** To be called whenever a look leaves ids that may be issued without one. */
  set(): void {
    if (this.#cancel !== undefined) return;
    const { timers, quietTimers = timers } = this.#ports;
    this.#cancel = quietTimers.after(BURST_MS, () => {
      this.#cancel = undefined;
      this.#lookAgain();
    });
  }

  cancel(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
