import { IdmintError, invalidField } from "@idmint/core";

/**
 * Refusals that are made for one call: CALL_CANCELLED with the caller's own reason as its cause, and UNSAFE_INTEGER with the id
 * that only this caller got.
 */
const OF_ONE_CALL: ReadonlySet<IdmintError["reason"]> = new Set([
  "CALL_CANCELLED",
  "UNSAFE_INTEGER",
]);

/** Refusals of a name that is none of the caller's. */
const OF_NO_TAG: ReadonlySet<IdmintError["reason"]> = new Set([
  "PERMISSION_DENIED",
  "TAG_NOT_FOUND",
]);
/** How long such a refusal is kept, in milliseconds: longer than any back-off after it. */
export const KEPT_MS = 5_000;

/** Whether a refusal says that a name is no tag, or none of the caller's. Only a caller asks for it again. */
export function isOfNoTag({ reason }: IdmintError): boolean {
  return OF_NO_TAG.has(reason);
}

/**
 * What one caller is refused with. All that wait for a load are refused with one error, and the last one is kept; so each caller
 * gets a copy, with a stack of its own, and what it sets on that nobody else sees. The shared one is the cause.
 */
export function ownRefusal(thrown: unknown): IdmintError {
  if (!(thrown instanceof IdmintError)) {
    const text = "an unexpected error in the SDK; see the cause";
    return new IdmintError("INTERNAL", text, { cause: thrown });
  }
  const { reason, message, metadata, violations, retryAfterMs } = thrown;
  if (OF_ONE_CALL.has(reason)) return thrown;
  const text = message.slice(reason.length + ": ".length);
  const after = retryAfterMs === undefined ? {} : { retryAfterMs };
  return new IdmintError(reason, text, { metadata, violations, ...after, cause: thrown });
}

/** A method that was taken off its object has no `this`. */
export function detached(method: string): IdmintError {
  const way = `call it on its tag, as in tag.${method}(), or pass () => tag.${method}()`;
  return invalidField(method, `was called without its tag: ${way}`);
}
