import { X509Certificate } from "node:crypto";
import { lookup } from "node:dns/promises";
import { connect } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { ConnectionSettings } from "../../flags/options.ts";
import { expiryFinding } from "./certificate.ts";
import { allWellOr, type Check, fail, type Finding, ok, warn } from "./checks.ts";

/** The way to a server: its name, its port, its certificate. */
export function reachChecks(settings: ConnectionSettings): readonly Check[] {
  const place = placeOf(settings.address);
  // What gRPC resolves by itself (dns:, unix:) is looked at from its health on.
  if (place === undefined) return [];
  const checks: Check[] = [
    {
      name: "dns",
      late: "look at /etc/resolv.conf and at the name servers in it",
      look: () => lookAtName(place.host),
    },
    {
      name: "tcp",
      needs: ["dns"],
      late: `nothing answers at ${settings.address}: look at firewalls and routes between this machine and it`,
      look: () => lookAtPort(place),
    },
  ];
  if (settings.tls === undefined) return checks;
  const { caPem } = settings.tls;
  const late =
    "the port takes connections but no TLS: is it the port of gRPC, and does it have TLS?";
  checks.push({ name: "tls", needs: ["tcp"], late, look: () => lookAtTls(place, caPem) });
  return checks;
}

interface Place {
  readonly host: string;
  readonly port: number;
}

function placeOf(address: string): Place | undefined {
  const [, bracketed, plain, port] = /^(?:\[(.+)\]|([^:]+)):(\d+)$/.exec(address) ?? [];
  const host = bracketed ?? plain;
  return host === undefined ? undefined : { host, port: Number(port) };
}

async function lookAtName(host: string): Promise<readonly Finding[]> {
  try {
    const found = await lookup(host, { all: true });
    return [ok(`${host} is ${found.map(({ address }) => address).join(", ")}`)];
  } catch (error) {
    return [
      fail(
        `${host} does not resolve (${codeOf(error)})`,
        "correct --address, or add the name to DNS; look at /etc/resolv.conf on this machine",
      ),
    ];
  }
}

const TCP_FIXES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "start the server, or correct the port in --address",
  EHOSTUNREACH: "look at the routes between this machine and the server",
  ENETUNREACH: "look at the routes between this machine and the server",
};

function lookAtPort(place: Place): Promise<readonly Finding[]> {
  return new Promise((resolve) => {
    const start = performance.now();
    const socket = connect(place);
    socket.once("connect", () => {
      socket.destroy();
      resolve([ok(`connected in ${Math.ceil(performance.now() - start)} ms`)]);
    });
    socket.once("error", (error) => {
      const code = codeOf(error);
      const fix = TCP_FIXES[code] ?? "look at firewalls between this machine and the server";
      resolve([fail(`no connection to ${place.host}:${place.port} (${code})`, fix)]);
    });
  });
}

/** By the codes of OpenSSL and Node. Any other is about who signed it. */
const TLS_FIXES: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID:
    "call the server by a name that its certificate has, or issue one with this name (SAN)",
  CERT_NOT_YET_VALID: "check the clock of this machine, then who issued the certificate",
};
const SIGNER_FIX =
  "name the authority that signed it with --ca-file; if that is right, the server has a certificate of another one (tls.cert_file)";

function lookAtTls({ host, port }: Place, caPem: Buffer | undefined): Promise<readonly Finding[]> {
  return new Promise((resolve) => {
    const isName = !/^[\d.]+$|:/.test(host);
    const socket = connectTls({
      host,
      port,
      ALPNProtocols: ["h2"],
      // Whatever is wrong is reported, not only the first thing.
      rejectUnauthorized: false,
      ...(isName ? { servername: host } : {}),
      ...(caPem === undefined ? {} : { ca: caPem }),
    });
    socket.once("secureConnect", () => {
      resolve(tlsFindings(socket));
      socket.destroy();
    });
    socket.once("error", (error) => {
      const fix =
        "does the server have TLS (tls.cert_file)? Without it, leave out --tls and --ca-file";
      resolve([fail(`no TLS (${codeOf(error)})`, fix)]);
    });
  });
}

function tlsFindings(socket: TLSSocket): readonly Finding[] {
  const { raw } = socket.getPeerCertificate();
  const certificate = new X509Certificate(raw);
  const expiry = expiryFinding(certificate, Date.now(), "the certificate");
  // Node has a code here, though its types say an error.
  const refused = socket.authorized ? undefined : String(socket.authorizationError);
  const isExpiry = refused === "CERT_HAS_EXPIRED" || refused === "CERT_NOT_YET_VALID";
  return allWellOr(
    [
      expiry,
      refused === undefined || (isExpiry && expiry !== undefined)
        ? undefined
        : fail(`the certificate is not trusted (${refused})`, TLS_FIXES[refused] ?? SIGNER_FIX),
      socket.alpnProtocol === "h2"
        ? undefined
        : warn(
            "the server does not offer HTTP/2 (ALPN h2)",
            "a proxy in between must pass HTTP/2 through for gRPC",
          ),
    ],
    `${socket.getProtocol()}, valid until ${certificate.validTo}`,
  );
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
