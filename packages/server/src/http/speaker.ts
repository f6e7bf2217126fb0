import type { IncomingMessage, Server, ServerOptions, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { SecureContextOptions } from "node:tls";
import { nodeTimers } from "../timers.ts";
import type { Certificates } from "../tls/files.ts";
import { HANDSHAKE_MS, HandshakeGate } from "../tls/handshakes.ts";
import { HttpRefusal, sayLast } from "./answers.ts";
import { HEADERS_MS, MAX_HEADERS } from "./requests/held.ts";

/** Requests are small, and nobody may be slow about them. */
const LIMITS: ServerOptions = {
  // Browsers send all cookies of this host, whichever program they are of.
  maxHeaderSize: 16 * 1_024,
  headersTimeout: HEADERS_MS,
  requestTimeout: 15_000,
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 1_000,
  // The door answers by itself, in JSON.
  requireHostHeader: false,
  // Of two tokens or hosts nobody knows which one is meant.
  joinDuplicateHeaders: true,
};
/** On a connection above the limit. */
const RESERVED: ServerOptions = { headersTimeout: 5_000, requestTimeout: 5_000 };
/** How long nothing may move on a connection whose answers are not taken. */
const STUCK_MS = 60_000;
/** What is told of requests that cannot be read, by the code of Node's error. */
const UNREADABLE: Readonly<Record<string, HttpRefusal>> = {
  HPE_HEADER_OVERFLOW: unreadable(
    431,
    "the headers are more than 100, or larger than 16 KiB together",
  ),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: unreadable(413, "the chunk extensions are larger than 16 KiB"),
  ERR_HTTP_REQUEST_TIMEOUT: unreadable(408, "the request did not come whole in time"),
};
const NO_PROXY = unreadable(405, "this server is no proxy");
const BAD_REQUEST = unreadable(400, "this is not a request of HTTP/1.1");
export interface SpeakerParts {
  readonly isReserved: boolean;
  readonly onRefused: (peer: string, why: string) => void;
  /** Undefined: in plain text. */
  readonly tls: { readonly first: Certificates; readonly asksClients: boolean } | undefined;
  /** A connection begins, over TLS when its handshake is done. */
  readonly begin: (socket: Socket) => void;
  readonly take: (message: IncomingMessage, response: ServerResponse, isExpecting: boolean) => void;
  /** Whether a request of this connection is being worked on. */
  readonly isWorking: (socket: Socket) => boolean;
  /** What comes on a connection cannot be read any more. */
  readonly fail: (socket: Socket, why: HttpRefusal) => void;
}

/** Node's server of HTTP, which listens nowhere. */
export interface Speaker {
  readonly server: Server;
  /** Speaks on a connection; over TLS when its handshake had its turn. */
  take(socket: Socket): void;
  /** New connections get these certificates. */
  renew(certificates: Certificates): void;
}

/** Makes what speaks HTTP on connections that somebody else takes. */
export function createSpeaker(parts: SpeakerParts): Speaker {
  const { isReserved, tls } = parts;
  const limits = isReserved ? { ...LIMITS, ...RESERVED } : LIMITS;
  // Imports of node:http and node:https read all they export, and so load Node's HTTP client too: 14 MB that nobody uses here.
  if (tls === undefined) {
    const server = process.getBuiltinModule("node:http").createServer(limits);
    const take = (socket: Socket): void => void server.emit("connection", socket);
    return { server: serving(server, parts), take, renew: () => undefined };
  }
  const server = process.getBuiltinModule("node:https").createServer({
    ...limits,
    ...contextOf(tls.first),
    handshakeTimeout: HANDSHAKE_MS,
    // Probes have no certificate, so the door decides who needs one.
    requestCert: tls.asksClients,
    rejectUnauthorized: false,
  });
  const { onRefused } = parts;
  const gate = new HandshakeGate({ timers: nodeTimers, now: () => performance.now(), onRefused });
  server.on("secureConnection", (socket) => gate.done(socket));
  return {
    server: serving(server, parts),
    take: (socket) => gate.take(socket, () => server.emit("connection", socket)),
    renew: (certificates) => server.setSecureContext(contextOf(certificates)),
  };
}

function serving<Its extends Server>(
  speaker: Its,
  { tls, begin, take, isWorking, fail }: SpeakerParts,
): Its {
  speaker.timeout = STUCK_MS;
  speaker.maxHeadersCount = MAX_HEADERS;
  // Behind what Node does itself.
  speaker.on(tls === undefined ? "connection" : "secureConnection", begin);
  speaker.on("request", (message, response) => take(message, response, false));
  speaker.on("checkContinue", (message, response) => take(message, response, true));
  // Nothing else can be expected, and whoever does can read the answer.
  speaker.on("checkExpectation", (message, response) => take(message, response, false));
  speaker.on("connect", (_message, socket) => sayLast(socket, NO_PROXY));
  speaker.on("timeout", (socket: Socket) => {
    if (isWorking(socket)) socket.setTimeout(STUCK_MS);
    else socket.destroy();
  });
  speaker.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const why = UNREADABLE[error.code ?? ""] ?? BAD_REQUEST;
    const its = socket as Socket;
    if (!its.writable || error.code === "ECONNRESET") its.destroy();
    else fail(its, why);
  });
  return speaker;
}

function unreadable(status: number, message: string): HttpRefusal {
  return new HttpRefusal(status, "invalid_argument", message);
}

/** What TLS needs of the files. TLS 1.3 only, as for gRPC. */
function contextOf(certificates: Certificates): SecureContextOptions {
  const { certificate: cert, privateKey: key, caCertificate: ca } = certificates;
  return { cert, key, minVersion: "TLSv1.3", ...(ca === undefined ? {} : { ca }) };
}
