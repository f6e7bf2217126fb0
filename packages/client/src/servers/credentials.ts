import { type ChannelCredentials, credentials } from "@grpc/grpc-js";
import { invalidField } from "@idmint/core";
import type { TlsOptions } from "../options.ts";

export function credentialsOf(tls: false | TlsOptions): ChannelCredentials {
  if (tls === false) return credentials.createInsecure();
  const { ca, cert, key } = tls;
  try {
    return credentials.createSsl(bytes(ca), bytes(key), bytes(cert));
  } catch (thrown) {
    // Of OpenSSL: it names what is wrong, and shows nothing of the key.
    throw invalidField("tls", `has a certificate or key that cannot be used: ${messageOf(thrown)}`);
  }
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

function bytes(pem: string | Uint8Array | undefined): Buffer | null {
  if (pem === undefined) return null;
  return typeof pem === "string" ? Buffer.from(pem, "utf8") : Buffer.from(pem);
}
