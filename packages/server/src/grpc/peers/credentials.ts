import { readFile } from "node:fs/promises";
import { type ChannelCredentials, credentials } from "@grpc/grpc-js";

/** PEM files of a server that has TLS; it speaks to others with them. */
export interface PeerTlsFiles {
  /** What this server shows to peers that want a certificate. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Authorities that signed the peers' certificates; undefined: those that Node knows. */
  readonly caFile: string | undefined;
}

/** Read anew each time, since certificates are renewed. */
export async function peerCredentials(
  files: PeerTlsFiles | undefined,
): Promise<ChannelCredentials> {
  if (files === undefined) return credentials.createInsecure();
  const { certFile, keyFile, caFile } = files;
  const [certificate, privateKey, ca] = await Promise.all([
    readFile(certFile),
    readFile(keyFile),
    caFile === undefined ? null : readFile(caFile),
  ]);
  return credentials.createSsl(ca, privateKey, certificate);
}
