import { cancelled, type CoordinationError } from "../errors.ts";

/** A call that waits until it is answered, refused, cancelled or out of time. The first of these counts. */
export class Waiting<T> {
  readonly promise: Promise<T>;
  readonly #resolve: (answer: T) => void;
  readonly #reject: (error: CoordinationError) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #onEnd: () => void;
  #isOver = false;

  /** `onTimeout` says what becomes of it; `onEnd` is called once, whatever ended it. */
  constructor(
    what: string,
    limits: { readonly timeoutMs: number; readonly signal: AbortSignal | undefined },
    handlers: {
      readonly onTimeout: () => void;
      readonly onEnd: () => void;
      readonly onAbort?: () => void;
    },
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.promise = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#signal = limits.signal;
    this.#onEnd = handlers.onEnd;
    this.#timer = setTimeout(handlers.onTimeout, limits.timeoutMs);
    this.#onAbort = (): void => {
      if (this.#signal === undefined || this.#isOver) return;
      this.refuse(cancelled(what, this.#signal));
      handlers.onAbort?.();
    };
    this.#signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  readonly #onAbort: () => void;

  get isOver(): boolean {
    return this.#isOver;
  }

  /** False when it was over already. */
  answer(answer: T): boolean {
    if (this.#isOver) return false;
    this.#end();
    this.#resolve(answer);
    return true;
  }

  refuse(error: CoordinationError): void {
    if (this.#isOver) return;
    this.#end();
    this.#reject(error);
  }

  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#onEnd();
  }
}
