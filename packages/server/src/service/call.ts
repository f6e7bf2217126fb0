import { answerBy, bounded, cancelled, type Clock, IdmintError, type Timers } from "@idmint/core";
import { type Principal, storeUnavailable } from "@idmint/core/server";

/** What a handler knows of a call, whatever door it came through. Everything is read only where it is needed. */
export interface CallContext {
  /** When the caller wants an answer at the latest, on the server's Clock. Always set: calls without one get a bound. */
  readonly deadline: number;
  /** Aborted when the caller goes away. */
  readonly signal: AbortSignal;
  /** Address of the caller, for logs. */
  readonly peer: string;
  /** Who the caller is to admission, and to quotas unless it is a principal: many calls and connections are of one caller. */
  readonly caller: string;
  /** Who the caller was proved to be; undefined: it showed nothing. Throws UNAUTHENTICATED for what is not right. */
  readonly principal: Principal | undefined;
  /**
   * What the caller showed as its header `authorization`. It goes to other servers of the store on behalf of this caller, and
   * nowhere else.
   */
  authorization(): string | undefined;
}

/** A call's time and patience, as the domain services see them. */
export type Patience = Pick<CallContext, "deadline" | "signal">;

/** A promise that the call stops waiting for: `settle` exactly once wins, whatever comes first. */
export interface Waiter<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: IdmintError): void;
}

/**
 * A waiter that ends by itself: shortly before the call's deadline with the error that `tooLate` makes, and with
 * CALL_CANCELLED when the caller goes away. `onEnd` runs once, when it has ended by whatever means.
 */
export function waiterOf<T>(
  call: Patience,
  ports: { clock: Clock; timers: Timers },
  tooLate: () => IdmintError,
  onEnd: () => void,
): Waiter<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  let ended = false;
  const end = (): boolean => {
    if (ended) return false;
    ended = true;
    stopTimer();
    call.signal.removeEventListener("abort", onAbort);
    onEnd();
    return true;
  };
  const onAbort = (): void => {
    if (end()) reject(cancelled());
  };
  const now = ports.clock.now();
  const stopTimer = ports.timers.after(Math.max(0, answerBy(now, call) - now), () => {
    if (end()) reject(tooLate());
  });
  if (call.signal.aborted) queueMicrotask(onAbort);
  else call.signal.addEventListener("abort", onAbort);
  return {
    promise,
    resolve: (value) => {
      if (end()) resolve(value);
    },
    reject: (error) => {
      if (end()) reject(error);
    },
  };
}

/**
 * The answer of a store call, or STORE_UNAVAILABLE after `boundMs`. A late answer goes to `onLate`, so that what it
 * carries is counted; it is never used.
 */
export async function within<T>(
  work: () => Promise<T>,
  boundMs: number,
  timers: Timers,
  onLate?: (value: T) => void,
): Promise<T> {
  let isLate = false;
  const giveUp = (): never => {
    isLate = true;
    throw storeUnavailable(`the store did not answer within ${boundMs} ms`);
  };
  try {
    const answer = work();
    if (onLate !== undefined)
      answer.then(
        (value) => void (isLate && onLate(value)),
        () => undefined,
      );
    return await bounded(answer, boundMs, timers, giveUp);
  } catch (thrown) {
    // Whatever a driver throws, the outcome is not known.
    if (thrown instanceof IdmintError) throw thrown;
    throw storeUnavailable("the store failed in an unexpected way", thrown);
  }
}

/** This server is not configured with what a tag counts in. Trying again does not help; others may be. */
export function notConfigured(tag: string, why: string): IdmintError {
  return new IdmintError("NOT_CONFIGURED", `tag "${tag}" ${why}`, { metadata: { tag } });
}

/** A bounded queue is full. */
export function overloaded(text: string, metadata: Record<string, string> = {}): IdmintError {
  return new IdmintError("OVERLOADED", text, { metadata, retryAfterMs: 1_000 });
}
