/** What gRPC over HTTP/2 says about heads, time-outs and texts (its PROTOCOL-HTTP2 document). */

const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};
const TIMEOUT = /^(\d{1,8})([HMSmun])$/;

/** A `grpc-timeout` in milliseconds; undefined: it is none. */
export function timeoutOf(text: string): number | undefined {
  const [, digits = "", unit = ""] = TIMEOUT.exec(text) ?? [];
  const ms = UNIT_MS[unit];
  return ms === undefined ? undefined : Number(digits) * ms;
}

export function isGrpc(contentType: string): boolean {
  const rest = contentType.startsWith(GRPC) ? contentType.slice(GRPC.length) : "?";
  return rest === "" || rest === "+proto" || rest.startsWith(";");
}

const GRPC = "application/grpc";

/** A `grpc-message`: what is no printable ASCII is percent-encoded, as UTF-8. */
export function encodeMessage(text: string): string {
  return text.replaceAll(/[^ -$&-~]+/gu, (part) => {
    const bytes = [...Buffer.from(part, "utf8")];
    return bytes.map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
  });
}
