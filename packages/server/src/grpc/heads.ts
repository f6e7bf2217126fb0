import type { IncomingHttpHeaders } from "node:http2";

const LONG_TIMEOUT = /^(\d{1,8})([HMS])$/;
const UNIT_S: Readonly<Record<string, number>> = { H: 3_600, M: 60, S: 1 };
/** The longest time of Node's timers. */
const LONGEST_S = Math.floor((2 ** 31 - 1) / 1_000);

/**
 * Whether a request names one server (RFC 9113, 8.3.1). Of a Host beside another :authority, nobody knows which one is meant, and a
 * proxy may have looked at the other one.
 */
export function isOneHost({ ":authority": authority, host }: IncomingHttpHeaders): boolean {
  if (host === undefined || host === authority || authority === undefined) return true;
  return host.toLowerCase() === authority.toLowerCase();
}

/** grpc-js takes a time of more than 24 days for one that is over. */
export function boundTimeout(headers: IncomingHttpHeaders): void {
  const [, digits, unit = ""] = LONG_TIMEOUT.exec(String(headers["grpc-timeout"])) ?? [];
  if (Number(digits) * (UNIT_S[unit] ?? 0) > LONGEST_S) headers["grpc-timeout"] = `${LONGEST_S}S`;
}
