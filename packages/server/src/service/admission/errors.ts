import { IdmintError } from "@idmint/core";
import type { OverQuota } from "@idmint/core/server";
import { overloaded } from "../call.ts";

// An error is as dear as a call, mostly for its stack. So refusals of one kind share one, which never changes.

const OVERLOAD_TEXT =
  "this server has more calls than it can answer in time; call again later, or call another server";
const OVERLOAD_RETRY_MS = [1_000, 1_125, 1_250, 1_375, 1_500, 1_625, 1_750, 1_875];

const overloadErrors = OVERLOAD_RETRY_MS.map((retryAfterMs) =>
  Object.freeze(new IdmintError("OVERLOADED", OVERLOAD_TEXT, { retryAfterMs })),
);
let nextError = 0;

/** The refusal of an overloaded server. Their times differ, so that not all callers come back at once. */
export function overloadError(): IdmintError {
  nextError = (nextError + 1) % overloadErrors.length;
  return overloadErrors[nextError] ?? overloaded(OVERLOAD_TEXT);
}

export function waitingError(limit: number): IdmintError {
  return Object.freeze(
    overloaded(
      `too many calls wait in this server, and many of them are of this caller: limits.calls is ${limit}`,
    ),
  );
}

const MAX_KEPT = 1_000;
/** For so long the time in an error is right enough. */
const KEPT_MS = 20;

/** Refusals of quotas, each kept for a moment: whoever is over a quota mostly calls again at once. */
export class QuotaErrors {
  readonly #kept = new Map<string, { readonly error: IdmintError; readonly at: number }>();

  of(over: OverQuota, now: number): IdmintError {
    const key = `${over.quota} ${over.most ?? ""} ${over.subject}`;
    const known = this.#kept.get(key);
    if (known !== undefined && now - known.at < KEPT_MS) return known.error;
    const error = Object.freeze(quotaExceeded(over));
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear();
    this.#kept.set(key, { error, at: now });
    return error;
  }

  forget(): void {
    this.#kept.clear();
  }
}

function quotaExceeded({ quota, subject, rate, waitMs, most }: OverQuota): IdmintError {
  const [what = "", unit = ""] = quota.split("_");
  const text =
    most === undefined
      ? `${what} "${subject}" is over its quota of ${rate} ${unit}/s (quota.${quota}); call again later`
      : `${what} "${subject}" has a quota of ${rate} ${unit}/s (quota.${quota}), of which one call may take ${most} ids at most; ask for fewer`;
  return new IdmintError("QUOTA_EXCEEDED", text, {
    metadata: { quota, limit: String(rate), [what]: subject },
    retryAfterMs: Math.max(1, Math.ceil(waitMs)),
  });
}
