import type { Period } from "@idmint/core";
import type { Emit } from "../events.ts";

/** Most tags whose doubtful periods are remembered, so that each is told of once. */
const MAX_TAGS = 10_000;

/** Tells when the clocks speak against the periods that tags issue in, and when they no longer do; once each. */
export class PeriodWatch {
  readonly #emit: Emit;
  readonly #told = new Map<string, string>();

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  /** What a grant said of its period. */
  observe(tag: string, { start, doubt }: Period): void {
    const told = this.#told.get(tag);
    if (doubt === undefined) {
      if (told === undefined) return;
      this.#told.delete(tag);
      this.#emit({ type: "period-confirmed", tag, start });
      return;
    }
    const telling = `${doubt} ${start}`;
    if (told === telling || (told === undefined && this.#told.size >= MAX_TAGS)) return;
    this.#told.set(tag, telling);
    this.#emit({ type: "period-in-doubt", tag, start, why: doubt });
  }
}
