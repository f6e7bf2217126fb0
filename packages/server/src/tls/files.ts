import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { IdmintError } from "@idmint/core";

/** How often the files are read again. */
const RELOAD_EVERY_MS = 10_000;

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** With it callers must show a certificate that one of these authorities signed. */
  readonly clientCaFile: string | undefined;
}

export interface Certificates {
  readonly certificate: Buffer;
  readonly privateKey: Buffer;
  readonly caCertificate: Buffer | undefined;
}

/** Certificates that follow their files. */
export interface FollowedCertificates {
  readonly current: Certificates;
  close(): void;
}

/**
 * Reads certificate, key and authorities, and reads them again every ten seconds, so that renewed ones need no restart.
 * Rejects when they do not fit together at the start; later such files are reported and the old ones stay in use.
 */
export async function followCertificates(
  files: TlsFiles,
  onChange: (certificates: Certificates) => void,
  onBadReload: (error: unknown) => void,
): Promise<FollowedCertificates> {
  let current = await readCertificates(files);
  const reload = async (): Promise<void> => {
    try {
      const read = await readCertificates(files);
      if (isSame(read, current)) return;
      current = read;
      onChange(current);
    } catch (error) {
      onBadReload(error);
    }
  };
  const timer = setInterval(() => void reload(), RELOAD_EVERY_MS);
  timer.unref();
  return {
    get current() {
      return current;
    },
    close: () => clearInterval(timer),
  };
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
