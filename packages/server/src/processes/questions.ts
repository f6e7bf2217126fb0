import { bounded, type Timers } from "@idmint/core";

/** Questions to another process, each with a number that its answer repeats. */
export class Questions<Answer> {
  readonly #timers: Timers;
  readonly #open = new Map<number, (answer: Answer | undefined) => void>();
  #nextNumber = 1;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** Fulfils with the answer, or with undefined after `boundMs`, or when nobody is left to answer. */
  async ask(send: (number: number) => void, boundMs: number): Promise<Answer | undefined> {
    const number = this.#nextNumber++;
    const { promise, resolve } = Promise.withResolvers<Answer | undefined>();
    this.#open.set(number, resolve);
    send(number);
    const answer = await bounded(promise, boundMs, this.#timers, () => undefined);
    this.#open.delete(number);
    return answer;
  }

  answered(number: number, answer: Answer | undefined): void {
    this.#open.get(number)?.(answer);
  }

  /** Nobody answers any more. */
  end(): void {
    for (const resolve of this.#open.values()) resolve(undefined);
  }
}
