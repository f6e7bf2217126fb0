import { IdmintError } from "./errors.ts";
import type { Abort } from "./ports.ts";

/** How long a call may wait. */
export interface Call {
  /** When the caller stops waiting, on the clock of whoever is asked. Default: 10 s from now. */
  readonly deadline?: number | undefined;
  /** Whether it need not wait for another try once the loader gives up. Default: false. */
  readonly isImpatient?: boolean;
  readonly signal?: Abort | undefined;
}

/** How long before its deadline a waiting call is refused, so that the refusal still reaches its caller. */
export const ANSWER_MARGIN_MS = 50;
/** Longest wait of a call that set no deadline. */
const MAX_WAIT_MS = 10_000;

/** When a call must have an answer. Short deadlines keep half of their time for waiting. */
export function answerBy(now: number, call: Call | undefined): number {
  const deadline = call?.deadline ?? now + MAX_WAIT_MS;
  const left = Math.max(0, deadline - now);
  return deadline - Math.min(ANSWER_MARGIN_MS, left / 2);
}

/** `reason`: what the caller aborted its signal with. */
export function cancelled({ reason }: Pick<Abort, "reason"> = {}): IdmintError {
  const details = reason === undefined ? {} : { cause: reason };
  return new IdmintError("CALL_CANCELLED", "the caller gave up waiting", details);
}

/** Tells when the caller goes away; the answer ends that. */
export function whenCancelled(
  signal: Abort | undefined,
  tell: (error: IdmintError) => void,
): (() => void) | undefined {
  if (signal === undefined) return undefined;
  const onAbort = (): void => tell(cancelled(signal));
  signal.addEventListener("abort", onAbort, { once: true });
  return () => {
    // One that was aborted has let go of its listeners. It would look through all of them for each one.
    if (!signal.aborted) signal.removeEventListener("abort", onAbort);
  };
}

/** A bounded queue of calls for one tag is full. */
export function tooManyWaiters(tag: string, maxWaiters: number): IdmintError {
  return new IdmintError(
    "OVERLOADED",
    `${maxWaiters} calls wait for tag "${tag}" already; slow down or raise the limit of waiters`,
    { metadata: { tag }, retryAfterMs: 1_000 },
  );
}
