import { experimental, type ServerCredentials } from "@grpc/grpc-js";
import { type Certificates, followCertificates, type TlsFiles } from "../tls/files.ts";

type Provider = experimental.CertificateProvider;
type IdentityListener = experimental.IdentityCertificateUpdateListener;
type CaListener = experimental.CaCertificateUpdateListener;

/** Credentials that follow their files, and how to stop that. */
export interface TlsCredentials {
  readonly credentials: ServerCredentials;
  close(): void;
}

/** Credentials out of files, which renewed ones replace. (The library's own watcher would refuse every connection until they are right.) */
export async function tlsCredentials(
  files: TlsFiles,
  onBadReload: (error: unknown) => void,
): Promise<TlsCredentials> {
  const identityListeners = new Set<IdentityListener>();
  const caListeners = new Set<CaListener>();
  const tell = ({ certificate, privateKey, caCertificate }: Certificates): void => {
    for (const listener of caListeners) {
      listener(caCertificate === undefined ? null : { caCertificate });
    }
    for (const listener of identityListeners) listener({ certificate, privateKey });
  };
  const followed = await followCertificates(files, tell, onBadReload);
  const provider: Provider = {
    // The credentials watch themselves only after they were told to listen, so the first word comes later.
    addIdentityCertificateListener: (listener) => {
      identityListeners.add(listener);
      queueMicrotask(() => tell(followed.current));
    },
    removeIdentityCertificateListener: (listener) => identityListeners.delete(listener),
    addCaCertificateListener: (listener) => caListeners.add(listener),
    removeCaCertificateListener: (listener) => caListeners.delete(listener),
  };
  const wantsClients = files.clientCaFile !== undefined;
  return {
    credentials: modern(
      experimental.createCertificateProviderServerCredentials(
        provider,
        wantsClients ? provider : null,
        wantsClients,
      ),
    ),
    close: () => followed.close(),
  };
}

/** What grpc-js makes TLS contexts of: at first, and each time the certificates change. */
type Contexts = Record<
  "_getConstructorOptions" | "calculateSecureContextOptions",
  () => object | null
>;

/**
 * The same, for TLS 1.3 only. grpc-js has no option for that, and the process's own least version would be that of its
 * connections to databases too. A test shows that it works.
 */
function modern(credentials: ServerCredentials): ServerCredentials {
  const contexts = credentials as unknown as Contexts;
  for (const name of ["_getConstructorOptions", "calculateSecureContextOptions"] as const) {
    const inner = contexts[name].bind(contexts);
    contexts[name] = () => {
      const options = inner();
      return options === null ? null : { ...options, minVersion: "TLSv1.3" };
    };
  }
  return credentials;
}
