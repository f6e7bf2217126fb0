// A self-signed certificate, made afresh: no key lies in the repository, and none expires.
import { generateKeyPairSync, type KeyPairKeyObjectResult, sign } from "node:crypto";

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const { length } = body;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Uint8Array.of(tag, ...size), body]);
}

const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts);
const oid = (...bytes: readonly number[]): Buffer => der(0x06, Uint8Array.from(bytes));
const text = (tag: number, value: string): Buffer => der(tag, Buffer.from(value));

const ECDSA_SHA256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
const COMMON_NAME = oid(0x55, 0x04, 0x03);
const ALT_NAME = oid(0x55, 0x1d, 0x11);
const BASIC_CONSTRAINTS = oid(0x55, 0x1d, 0x13);

function pem(label: string, bytes: Uint8Array): string {
  const lines =
    Buffer.from(bytes)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

interface CertificateOptions {
  /** When it expires, as YYYYMMDDHHMMSSZ. Default: not in this century. */
  readonly until?: string;
  /** One more alternative name. */
  readonly uri?: string;
  /** Default: the DNS name. */
  readonly commonName?: string;
}

interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A certificate for one DNS name, its own authority. */
export function selfSigned(dnsName: string, options: CertificateOptions = {}): Certificate {
  const keys = newKeys();
  return certificate(dnsName, options, keys, { isAuthority: true });
}

/** A certificate for one DNS name, of an authority: some libraries take none that is its own. */
export function signedBy(authority: Certificate, dnsName: string, issuer: string): Certificate {
  const { key } = authority;
  return certificate(dnsName, {}, newKeys(), { isAuthority: false, key, issuer });
}

function newKeys(): KeyPairKeyObjectResult {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

function nameOf(commonName: string): Buffer {
  return sequence(der(0x31, sequence(COMMON_NAME, text(0x0c, commonName))));
}

/** `key` and `issuer`: of who signs it. Default: itself. */
function certificate(
  dnsName: string,
  { until = "20991231235959Z", uri, commonName = dnsName }: CertificateOptions,
  { privateKey, publicKey }: KeyPairKeyObjectResult,
  by: { readonly isAuthority: boolean; readonly key?: string; readonly issuer?: string },
): Certificate {
  const validity = sequence(text(0x18, "20200101000000Z"), text(0x18, until));
  const more = uri === undefined ? [] : [text(0x86, uri)];
  const altNames = der(0x04, sequence(text(0x82, dnsName), ...more));
  const rights = by.isAuthority ? [der(0x01, Uint8Array.of(0xff))] : [];
  const extensions = sequence(
    sequence(ALT_NAME, altNames),
    sequence(BASIC_CONSTRAINTS, der(0x04, sequence(...rights))),
  );
  const toBeSigned = sequence(
    der(0xa0, der(0x02, Uint8Array.of(2))),
    der(0x02, Uint8Array.of(1)),
    ECDSA_SHA256,
    nameOf(by.issuer ?? commonName),
    validity,
    nameOf(commonName),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, extensions),
  );
  const signature = sign("sha256", toBeSigned, by.key ?? privateKey);
  return {
    cert: pem(
      "CERTIFICATE",
      sequence(toBeSigned, ECDSA_SHA256, der(0x03, Uint8Array.of(0), signature)),
    ),
    key: String(privateKey.export({ type: "pkcs8", format: "pem" })),
  };
}
