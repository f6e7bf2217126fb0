import type { X509Certificate } from "node:crypto";
import { fail, type Finding, warn } from "./checks.ts";

const DAY_MS = 86_400_000;
/** Renewal by machines happens 30 days before the end; who is later than this has a renewal that does not work. */
const WARN_DAYS = 21;

/** Whether a certificate has begun and has not ended, and how much of it is left; undefined: enough. */
export function expiryFinding(
  { validFrom, validTo }: Pick<X509Certificate, "validFrom" | "validTo">,
  nowMs: number,
  what: string,
): Finding | undefined {
  const days = Math.floor((Date.parse(validTo) - nowMs) / DAY_MS);
  const renew = "renew it; servers read renewed files within 10 s, without a restart";
  if (Date.parse(validTo) <= nowMs) return fail(`${what} expired at ${validTo}`, renew);
  if (Date.parse(validFrom) > nowMs) {
    return fail(
      `${what} is not valid before ${validFrom}`,
      "check the clock of this machine, then who issued it",
    );
  }
  return days < WARN_DAYS ? warn(`${what} expires in ${days} days`, renew) : undefined;
}
