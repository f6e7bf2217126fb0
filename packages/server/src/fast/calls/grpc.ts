/** What gRPC over HTTP/2 says about heads, time-outs and texts (its PROTOCOL-HTTP2 document). */

const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ["H", 3_600_000],
  ["M", 60_000],
  ["S", 1_000],
  ["m", 1],
  ["u", 1e-3],
  ["n", 1e-6],
]);
const MAX_DIGITS = 8;
const DIGIT_0 = 0x30;

/** A `grpc-timeout` in milliseconds; undefined: it is none. Most calls have one, so it makes nothing. */
export function timeoutOf(text: string): number | undefined {
  const digits = text.length - 1;
  if (digits < 1 || digits > MAX_DIGITS) return undefined;
  let value = 0;
  for (let i = 0; i < digits; i++) {
    const digit = text.charCodeAt(i) - DIGIT_0;
    if (digit < 0 || digit > 9) return undefined;
    value = 10 * value + digit;
  }
  const ms = UNIT_MS.get(text.charAt(digits));
  return ms === undefined ? undefined : value * ms;
}

export function isGrpc(contentType: string): boolean {
  const rest = contentType.startsWith(GRPC) ? contentType.slice(GRPC.length) : "?";
  return rest === "" || rest === "+proto" || rest.startsWith(";");
}

const GRPC = "application/grpc";

/** A space at an end, too: values of HTTP/2 have none there, and peers drop those that do (RFC 9113, 8.2.1). */
const OTHER = /[^ -$&-~]|^ | $/u;

/** A `grpc-message`: what is no printable ASCII is percent-encoded, as UTF-8. */
export function encodeMessage(text: string): string {
  if (!OTHER.test(text)) return text;
  return text.replaceAll(/[^ -$&-~]+|^ | $/gu, (part) => {
    const bytes = [...Buffer.from(part, "utf8")];
    return bytes.map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
  });
}
