import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { endsOf } from "../tcp.ts";
import { nodeTimers } from "../timers.ts";
import { HandshakeGate } from "../tls/handshakes.ts";

/** A code of HTTP/2 (RFC 9113, 7). */
const ENHANCE_YOUR_CALM = 11;

export interface OpenSessionsParts {
  readonly isSecure: boolean;
  readonly onRefused: (peer: string, why: string) => void;
}

/** The sessions of node:http2 that are open, by the ends of their connections, and how connections become some. */
export class OpenSessions {
  readonly #sessions = new Map<string, ServerHttp2Session>();
  readonly #gate: HandshakeGate | undefined;

  constructor({ isSecure, onRefused }: OpenSessionsParts) {
    const parts = { timers: nodeTimers, now: () => performance.now(), onRefused };
    this.#gate = isSecure ? new HandshakeGate(parts) : undefined;
  }

  /** A connection that is to become a session: at once, or when its handshake has its turn. */
  take(socket: Socket, begin: () => void): void {
    if (this.#gate === undefined) begin();
    else this.#gate.take(socket, begin);
  }

  /** It became one. */
  add(session: ServerHttp2Session): void {
    const ends = endsOf(session.socket);
    this.#gate?.done(session.socket);
    this.#sessions.set(ends, session);
    session.once("close", () => this.#sessions.delete(ends));
  }

  /** Closes a connection whose place somebody else has now. Its peer may read why, but nobody waits until it has. */
  giveWay(socket: Socket): void {
    const session = this.#sessions.get(endsOf(socket));
    session?.goaway(ENHANCE_YOUR_CALM);
    session?.destroy();
    socket.destroySoon();
  }
}
