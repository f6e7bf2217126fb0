import type { IdmintError } from "@idmint/core";

/** Headers are read by people here, so they stay short. */
const MAX_TEXT = 400;

/** Why a call was refused, for answers whose form has no room for it. */
export function errorHeaders(error: IdmintError): Readonly<Record<string, string>> {
  const { reason, message, retryAfterMs } = error;
  const headers = { "idmint-reason": reason, "idmint-message": printable(message) };
  if (retryAfterMs === undefined) return headers;
  return { ...headers, "retry-after": String(Math.max(1, Math.ceil(retryAfterMs / 1_000))) };
}

/** Headers hold no control characters; a name that a caller sent may hold anything. */
function printable(text: string): string {
  return text.slice(0, MAX_TEXT).replaceAll(/[^\u0020-\u007e]/g, "?");
}
