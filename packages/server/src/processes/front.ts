import { createServer, type Server, type Socket } from "node:net";
import { callerOf } from "../api/caller.ts";
import { type Place, Places } from "../doors/places-state.ts";
import { listen } from "../tcp.ts";

/** Most connections that wait for a process. Further ones are closed. */
const MAX_WAITING = 1_024;
const NO_PLACE = "all connections are open already, the most of them from its address";
/** How long they wait. A process that died is back by then. */
const WAIT_MS = 5_000;

export interface FrontOptions {
  readonly host: string;
  readonly port: number;
  /** Connections of all processes that are open at once; above it, the address with the most of them gives way (see Places). */
  readonly maxConnections: number;
  readonly onRefused: (peer: string, why: string) => void;
  /** Takes connections that no process takes, and those above the limit. Undefined: they wait, or are closed. */
  readonly otherwise?: (socket: Socket) => void;
}

/** Where connections go. */
export interface Takers {
  /**
   * Hands one over, and tells when it has ended. Answers what closes it for somebody else; undefined when no process takes it
   * now.
   */
  hand(socket: Socket, onClosed: () => void): (() => void) | undefined;
}

/** A connection, from its arrival to its end. */
interface Connection {
  readonly socket: Socket;
  readonly peer: string;
  /** Closes it for somebody else. */
  giveWay: () => void;
}

/**
 * The parent's listener: takes connections, reads nothing of them, and hands them to processes. It alone holds the
 * port. So a taken port shows before any process starts, and the port is free when the parent dies.
 */
export class Front {
  readonly #options: FrontOptions;
  readonly #takers: Takers;
  readonly #server: Server;
  readonly #places: Places<Connection>;
  readonly #waiting = new Set<Place<Connection>>();
  #stopped = false;

  constructor(options: FrontOptions, takers: Takers) {
    this.#options = options;
    this.#takers = takers;
    this.#places = new Places(options.maxConnections);
    this.#server = createServer({ noDelay: true, pauseOnConnect: true }, (socket) =>
      this.#take(socket),
    );
  }

  /** Fulfils with the port; rejects when the address cannot be had. */
  listen(): Promise<number> {
    const { host, port } = this.#options;
    return listen(this.#server, { host, port, backlog: 1_024 }, (error) =>
      this.#options.onRefused("", error.message),
    );
  }

  /** The port that was taken. */
  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : this.#options.port;
  }

  /** To be called when a process takes connections that did not before. */
  offer(): void {
    for (const place of this.#waiting) {
      if (!this.#hand(place)) return;
      this.#waiting.delete(place);
      place.its.socket.setTimeout(0);
    }
  }

  /** Stops waiting: connections that no process takes now are closed. */
  stopWaiting(): void {
    this.#stopped = true;
    for (const { its } of this.#waiting) its.socket.destroy();
  }

  /** Takes no further connections. */
  close(): void {
    this.stopWaiting();
    this.#server.close();
  }

  #take(socket: Socket): void {
    const peer = `${socket.remoteAddress ?? "?"}:${socket.remotePort ?? "?"}`;
    socket.on("error", () => socket.destroy());
    const { maxConnections, otherwise } = this.#options;
    const connection = { socket, peer, giveWay: () => this.#refuse(connection, NO_PLACE) };
    const taken = this.#places.take(callerOf(peer), connection);
    if (taken === "no place is free") {
      if (otherwise === undefined)
        this.#refuse(connection, `${maxConnections} connections are open already`);
      else otherwise(socket);
      return;
    }
    const { place, loser } = taken;
    loser?.giveWay();
    if (this.#waiting.size === 0 && this.#hand(place)) return;
    if (otherwise === undefined) this.#wait(place);
    else {
      this.#places.free(place);
      otherwise(socket);
    }
  }

  /** Answers whether a process takes it. */
  #hand(place: Place<Connection>): boolean {
    const giveWay = this.#takers.hand(place.its.socket, () => this.#places.free(place));
    if (giveWay === undefined) return false;
    place.its.giveWay = giveWay;
    return true;
  }

  #wait(place: Place<Connection>): void {
    const { socket } = place.its;
    // Behind its hand-over a socket is not ours any more, whatever becomes of it.
    socket.once("close", () => {
      if (this.#waiting.delete(place)) this.#places.free(place);
    });
    const isFull = this.#waiting.size >= MAX_WAITING;
    this.#waiting.add(place);
    if (this.#stopped || isFull) {
      this.#refuse(place.its, "no process takes it");
      return;
    }
    // Nothing is read from it, so this time counts from its arrival.
    socket.setTimeout(WAIT_MS, () =>
      this.#refuse(place.its, `no process took it within ${WAIT_MS} ms`),
    );
  }

  #refuse({ socket, peer }: Connection, why: string): void {
    this.#options.onRefused(peer, why);
    socket.destroy();
  }
}
