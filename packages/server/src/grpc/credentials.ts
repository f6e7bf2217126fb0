import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { experimental, type ServerCredentials } from "@grpc/grpc-js";

type Provider = experimental.CertificateProvider;
type IdentityListener = experimental.IdentityCertificateUpdateListener;
type CaListener = experimental.CaCertificateUpdateListener;

/** How often the files are read again. */
const RELOAD_EVERY_MS = 10_000;

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** With it callers must show a certificate that one of these authorities signed. */
  readonly clientCaFile: string | undefined;
}

interface Certificates {
  readonly certificate: Buffer;
  readonly privateKey: Buffer;
  readonly caCertificate: Buffer | undefined;
}

/** Credentials that follow their files, and how to stop that. */
export interface TlsCredentials {
  readonly credentials: ServerCredentials;
  /** Reads the files now; what does not fit together is kept out, and the old certificates stay. */
  reload(): Promise<void>;
  close(): void;
}

/**
 * Reads certificate, key and authorities, and reads them again every ten seconds, so that renewed ones need no restart.
 * Rejects when they do not fit together at the start; later such files are reported and the old ones stay in use (the
 * library's own watcher would refuse every connection until the files are right again).
 */
export async function tlsCredentials(
  files: TlsFiles,
  onBadReload: (error: unknown) => void,
): Promise<TlsCredentials> {
  let current = await readCertificates(files);
  const identityListeners = new Set<IdentityListener>();
  const caListeners = new Set<CaListener>();
  const tell = (): void => {
    const { certificate, privateKey, caCertificate } = current;
    for (const listener of caListeners) {
      listener(caCertificate === undefined ? null : { caCertificate });
    }
    for (const listener of identityListeners) listener({ certificate, privateKey });
  };
  const provider: Provider = {
    // The credentials watch themselves only after they were told to listen, so the first word comes later.
    addIdentityCertificateListener: (listener) => {
      identityListeners.add(listener);
      queueMicrotask(tell);
    },
    removeIdentityCertificateListener: (listener) => identityListeners.delete(listener),
    addCaCertificateListener: (listener) => caListeners.add(listener),
    removeCaCertificateListener: (listener) => caListeners.delete(listener),
  };
  const reload = async (): Promise<void> => {
    try {
      const read = await readCertificates(files);
      if (isSame(read, current)) return;
      current = read;
      tell();
    } catch (error) {
      onBadReload(error);
    }
  };
  const timer = setInterval(() => void reload(), RELOAD_EVERY_MS);
  timer.unref();
  const wantsClients = files.clientCaFile !== undefined;
  return {
    credentials: experimental.createCertificateProviderServerCredentials(
      provider,
      wantsClients ? provider : null,
      wantsClients,
    ),
    reload,
    close: () => clearInterval(timer),
  };
}

async function readCertificates(files: TlsFiles): Promise<Certificates> {
  const { certFile, keyFile, clientCaFile } = files;
  const [certificate, privateKey, caCertificate] = await Promise.all([
    readFile(certFile),
    readFile(keyFile),
    clientCaFile === undefined ? undefined : readFile(clientCaFile),
  ]);
  // Throws when the key is another certificate's, or a file is half written.
  createSecureContext({
    cert: certificate,
    key: privateKey,
    ...(caCertificate === undefined ? {} : { ca: caCertificate }),
  });
  return { certificate, privateKey, caCertificate };
}

function isSame(a: Certificates, b: Certificates): boolean {
  return (
    a.certificate.equals(b.certificate) &&
    a.privateKey.equals(b.privateKey) &&
    (a.caCertificate ?? Buffer.alloc(0)).equals(b.caCertificate ?? Buffer.alloc(0))
  );
}
