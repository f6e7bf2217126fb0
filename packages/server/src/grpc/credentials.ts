import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { experimental, type ServerCredentials } from "@grpc/grpc-js";
import { IdmintError } from "@idmint/core";

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
    credentials: modern(
      experimental.createCertificateProviderServerCredentials(
        provider,
        wantsClients ? provider : null,
        wantsClients,
      ),
    ),
    reload,
    close: () => clearInterval(timer),
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

const parseCertificate = (pem: Buffer): X509Certificate => new X509Certificate(pem);

/** Rejects with the option whose file is to blame. */
async function readCertificates(files: TlsFiles): Promise<Certificates> {
  const { certFile, keyFile, clientCaFile } = files;
  const [certificate, privateKey, caCertificate] = await Promise.all([
    readPem("tls.cert_file", certFile, "certificate", parseCertificate),
    readPem("tls.key_file", keyFile, "private key without a passphrase", createPrivateKey),
    clientCaFile === undefined
      ? undefined
      : readPem("tls.client_ca_file", clientCaFile, "certificate", parseCertificate),
  ]);
  const ca = caCertificate === undefined ? {} : { ca: caCertificate };
  try {
    createSecureContext({ cert: certificate, key: privateKey, ...ca });
  } catch (error) {
    throw badFile("tls.key_file", `holds no key that fits the certificate: ${keyFile}`, error);
  }
  return { certificate, privateKey, caCertificate };
}

async function readPem(
  field: string,
  file: string,
  what: string,
  parse: (pem: Buffer) => unknown,
): Promise<Buffer> {
  let pem: Buffer;
  try {
    pem = await readFile(file);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    throw badFile(field, `names a file that cannot be read (${code}): ${file}`, error);
  }
  try {
    parse(pem);
  } catch (error) {
    throw badFile(field, `holds no ${what} in PEM: ${file}`, error);
  }
  return pem;
}

function badFile(field: string, description: string, cause: unknown): IdmintError {
  const text = `${field} ${description}`;
  return new IdmintError("INVALID_ARGUMENT", text, { violations: [{ field, description }], cause });
}

function isSame(a: Certificates, b: Certificates): boolean {
  return (
    a.certificate.equals(b.certificate) &&
    a.privateKey.equals(b.privateKey) &&
    (a.caCertificate ?? Buffer.alloc(0)).equals(b.caCertificate ?? Buffer.alloc(0))
  );
}
