import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { Clock } from "@idmint/core";
import { Leave, type Leaver } from "../doors/leave.ts";
import { endsOf } from "../tcp.ts";
import { nodeTimers } from "../timers.ts";
import { HandshakeGate } from "../tls/handshakes.ts";
import { leavingSession } from "./leaving-session.ts";

/** A code of HTTP/2 (RFC 9113, 7). */
const ENHANCE_YOUR_CALM = 11;

export interface OpenSessionsParts {
  readonly isSecure: boolean;
  readonly onRefused: (peer: string, why: string) => void;
  readonly clock: Clock;
}

/** The sessions of node:http2 that are open, by the ends of their connections, and how connections become some. */
export class OpenSessions {
  readonly #sessions = new Map<string, ServerHttp2Session>();
  readonly #gate: HandshakeGate | undefined;
  /** Tells them to go. */
  readonly leave: Leave;
  /** By the address and port of their peers. */
  readonly #leavers = new Map<string, Leaver>();

  constructor({ isSecure, onRefused, clock }: OpenSessionsParts) {
    this.leave = new Leave({ clock, timers: nodeTimers });
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
    const { remoteAddress, remotePort } = session.socket;
    const ends = endsOf(session.socket);
    const peer = `${remoteAddress}:${remotePort}`;
    const leaver = leavingSession(session);
    this.#gate?.done(session.socket);
    this.#sessions.set(ends, session);
    this.#leavers.set(peer, leaver);
    const forget = this.leave.add(leaver);
    session.once("close", () => {
      forget();
      this.#sessions.delete(ends);
      if (this.#leavers.get(peer) === leaver) this.#leavers.delete(peer);
    });
  }

  /** Tells one to go. `peer`: its address and port. */
  tell(peer: string): void {
    this.#leavers.get(peer)?.leave();
  }

  /** Closes a connection whose place somebody else has now. Its peer may read why, but nobody waits until it has. */
  giveWay(socket: Socket): void {
    const session = this.#sessions.get(endsOf(socket));
    session?.goaway(ENHANCE_YOUR_CALM);
    session?.destroy();
    socket.destroySoon();
  }
}
