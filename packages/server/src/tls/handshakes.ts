import type { Socket } from "node:net";
import type { Timers } from "@idmint/core";
import { callerOf } from "../api/caller.ts";
import { endsOf } from "../tcp.ts";
import { type Handshake, type HandshakeLimits, Handshakes } from "./handshakes-state.ts";

/** docs/overload.md explains them. */
const HANDSHAKE_LIMITS: HandshakeLimits = {
  running: 256,
  waiting: 1_024,
  perSecond: 500,
  burst: 50,
};
/** How long one may take, and how long a connection may wait for its own. */
export const HANDSHAKE_MS = 10_000;

export interface HandshakeGateParts {
  readonly timers: Timers;
  /** A clock that is never set back. */
  readonly now: () => number;
  readonly onRefused: (peer: string, why: string) => void;
}

interface Newcomer {
  readonly socket: Socket;
  readonly begin: () => void;
  readonly stopWaiting: () => void;
}

/** Lets connections into their TLS handshakes: the shell around handshakes-state.ts. */
export class HandshakeGate {
  readonly #parts: HandshakeGateParts;
  readonly #state: Handshakes<Newcomer>;
  /** By the ends of their connections. */
  readonly #handshakes = new Map<string, Handshake<Newcomer>>();
  #isWaiting = false;

  constructor(parts: HandshakeGateParts, limits: HandshakeLimits = HANDSHAKE_LIMITS) {
    this.#parts = parts;
    this.#state = new Handshakes(limits);
  }

  /** A connection of which nothing was read. `begin` begins its handshake, now or later. */
  take(socket: Socket, begin: () => void): void {
    const ends = endsOf(socket);
    const stopWaiting = this.#parts.timers.after(HANDSHAKE_MS, () =>
      this.#refuse(socket, "it waited too long for its TLS handshake"),
    );
    const arrived = this.#state.arrive(callerOf(peerOf(socket)), { socket, begin, stopWaiting });
    if (arrived === "no place is free") {
      stopWaiting();
      this.#refuse(socket, "too many connections wait for their TLS handshakes");
      return;
    }
    const { handshake, loser } = arrived;
    if (loser !== undefined) this.#giveWay(loser);
    this.#handshakes.set(ends, handshake);
    socket.once("close", () => {
      stopWaiting();
      if (this.#handshakes.get(ends) === handshake) this.#handshakes.delete(ends);
      this.#end(handshake);
    });
    this.#run();
  }

  /** The handshake on this connection was completed. The socket may be the one that TLS has on it. */
  done(socket: Socket): void {
    const ends = endsOf(socket);
    const handshake = this.#handshakes.get(ends);
    this.#handshakes.delete(ends);
    if (handshake !== undefined) this.#end(handshake);
  }

  #end(handshake: Handshake<Newcomer>): void {
    this.#state.end(handshake);
    this.#run();
  }

  #run(): void {
    for (;;) {
      const next = this.#state.next(this.#parts.now());
      if (next === undefined) return;
      if (typeof next === "number") {
        this.#runIn(next);
        return;
      }
      if (next.loser !== undefined) this.#giveWay(next.loser);
      const { stopWaiting, begin } = next.handshake.its;
      stopWaiting();
      begin();
    }
  }

  #runIn(waitMs: number): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#parts.timers.after(waitMs, () => {
      this.#isWaiting = false;
      this.#run();
    });
  }

  #giveWay({ socket }: Newcomer): void {
    this.#refuse(socket, "most of the TLS handshakes that run or wait are of its address");
  }

  #refuse(socket: Socket, why: string): void {
    this.#parts.onRefused(peerOf(socket), why);
    socket.destroy();
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? "?"}:${remotePort ?? "?"}`;
}
