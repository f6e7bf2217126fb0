import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { endsOf } from "../tcp.ts";

/** A code of HTTP/2 (RFC 9113, 7). */
const ENHANCE_YOUR_CALM = 11;

/** The sessions of node:http2 that are open, by the ends of their connections. */
export class OpenSessions {
  readonly #sessions = new Map<string, ServerHttp2Session>();

  add(session: ServerHttp2Session): void {
    const ends = endsOf(session.socket);
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
