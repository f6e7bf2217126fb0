import { FIRST_WINDOW, FRAME } from "./frames.ts";
import type { Out } from "./out.ts";
import type { Stream } from "./stream.ts";

/** What a connection may send before our streams take it in; larger than HTTP/2's own, so that streams do not wait for each other. */
const CONNECTION_WINDOW = 1_024 * 1_024;
/** How much of a window is kept before it is given back. */
const GIVE_BACK_SHARE = 0.5;

/** What the peer may send: the window of a connection, and those of its streams (RFC 9113, 5.2 and 6.9). */
export class ReceiveWindow {
  readonly #out: Out;
  /** Of the connection's window, what is not given back. */
  #taken = 0;

  constructor(out: Out) {
    this.#out = out;
  }

  begin(): void {
    this.#out.number(FRAME.WINDOW_UPDATE, 0, CONNECTION_WINDOW - FIRST_WINDOW);
  }

  /**
   * Bytes came on any stream, or on none that is open. All of them are given back, whatever becomes of them, so more than half of
   * this window is always open and no peer can exceed it; what is kept for peers has bounds of its own (`Held`).
   */
  take(bytes: number): void {
    this.#taken += bytes;
    if (this.#taken < CONNECTION_WINDOW * GIVE_BACK_SHARE) return;
    this.#out.number(FRAME.WINDOW_UPDATE, 0, this.#taken);
    this.#taken = 0;
  }

  /** What a stream took. */
  giveBack(stream: Stream): void {
    if (stream.unacknowledged < FIRST_WINDOW * GIVE_BACK_SHARE) return;
    this.#out.number(FRAME.WINDOW_UPDATE, stream.id, stream.unacknowledged);
    stream.receiveWindow += stream.unacknowledged;
    stream.unacknowledged = 0;
  }
}
