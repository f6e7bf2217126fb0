import type { Socket } from "node:net";
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from "node:tls";
import { nodeTimers } from "../timers.ts";
import {
  type Certificates,
  type FollowedCertificates,
  followCertificates,
  type TlsFiles,
} from "./files.ts";
import { HANDSHAKE_MS, HandshakeGate } from "./handshakes.ts";
import type { HandshakeLimits } from "./handshakes-state.ts";

/** HTTP/2 over TLS (RFC 9113, 3.2). */
const ALPN = "h2";

export interface SecureSocketsParts {
  /** How long a handshake may take, and how many may. Default: as docs/overload.md has it. */
  readonly handshakeMs?: number;
  readonly handshakes?: HandshakeLimits;
  /** A connection whose caller showed what it had to. */
  readonly take: (socket: TLSSocket) => void;
  readonly onRefused: (peer: string, why: string) => void;
  readonly onBadReload: (error: unknown) => void;
}

/**
 * TLS on connections that somebody else takes. TLS 1.3 only, which knows no renegotiation.
 *
 * INVARIANT: `take` gets connections only whose caller chose HTTP/2 by ALPN and, with client authorities, showed a
 * certificate that one of them signed.
 */
export class SecureSockets {
  readonly #server: Server;
  readonly #followed: FollowedCertificates;
  readonly #gate: HandshakeGate;
  #isClosed = false;

  private constructor(server: Server, followed: FollowedCertificates, gate: HandshakeGate) {
    this.#server = server;
    this.#followed = followed;
    this.#gate = gate;
  }

  /** Rejects when the files do not fit together. Renewed ones are taken for new connections. */
  static async create(files: TlsFiles, parts: SecureSocketsParts): Promise<SecureSockets> {
    const { handshakeMs = HANDSHAKE_MS, handshakes, take, onRefused, onBadReload } = parts;
    const followed = await followCertificates(
      files,
      (certificates) => server.setSecureContext(contextOf(certificates)),
      onBadReload,
    );
    // It never listens: connections are handed to it.
    const server = createServer({
      ...contextOf(followed.current),
      ALPNProtocols: [ALPN],
      handshakeTimeout: handshakeMs,
      requestCert: files.clientCaFile !== undefined,
      rejectUnauthorized: true,
    });
    server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
      socket.destroy();
      onRefused(peerOf(socket), `no TLS connection: ${error.code ?? error.message}`);
    });
    const gate = new HandshakeGate(
      { timers: nodeTimers, now: () => performance.now(), onRefused },
      handshakes,
    );
    const secure = new SecureSockets(server, followed, gate);
    server.on("secureConnection", (socket) => {
      socket.on("error", () => socket.destroy());
      gate.done(socket);
      if (secure.#isClosed) {
        socket.destroy();
        return;
      }
      if (socket.alpnProtocol === ALPN) {
        take(socket);
        return;
      }
      // Who offers other protocols only is turned away in the handshake; this one offered none.
      socket.destroy();
      onRefused(peerOf(socket), "it did not ask for HTTP/2 by ALPN");
    });
    return secure;
  }

  /** The connection has its handshake when it is its turn. */
  take(socket: Socket): void {
    this.#gate.take(socket, () => this.#server.emit("connection", socket));
  }

  /** Hands on no further connection, and follows the files no more. */
  close(): void {
    this.#isClosed = true;
    this.#followed.close();
  }
}

function contextOf(certificates: Certificates): SecureContextOptions {
  const { certificate: cert, privateKey: key, caCertificate: ca } = certificates;
  return { cert, key, minVersion: "TLSv1.3", ...(ca === undefined ? {} : { ca }) };
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? "?"}:${remotePort ?? "?"}`;
}
