import { createServer, type Server, type Socket } from "node:net";
import { listen } from "../tcp.ts";

/** Most connections that wait for a process. Further ones are closed. */
const MAX_WAITING = 1_024;
/** How long they wait. A process that died is back by then. */
const WAIT_MS = 5_000;

export interface FrontOptions {
  readonly host: string;
  readonly port: number;
  /** Connections of all processes that are open at once; further ones are closed. */
  readonly maxConnections: number;
  readonly onRefused: (peer: string, why: string) => void;
  /** Takes connections that no process takes, and those above the limit. Undefined: they wait, or are closed. */
  readonly otherwise?: (socket: Socket) => void;
}

/** Where connections go. */
export interface Takers {
  /** Connections that processes have. */
  readonly open: number;
  /** Hands one over; false when no process takes it now. */
  hand(socket: Socket): boolean;
}

/**
 * The parent's listener: takes connections, reads nothing of them, and hands them to processes. It alone holds the
 * port. So a taken port shows before any process starts, and the port is free when the parent dies.
 */
export class Front {
  readonly #options: FrontOptions;
  readonly #takers: Takers;
  readonly #server: Server;
  readonly #waiting = new Set<Socket>();
  #stopped = false;

  constructor(options: FrontOptions, takers: Takers) {
    this.#options = options;
    this.#takers = takers;
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
    for (const socket of this.#waiting) {
      if (!this.#takers.hand(socket)) return;
      this.#forget(socket);
    }
  }

  /** Stops waiting: connections that no process takes now are closed. */
  stopWaiting(): void {
    this.#stopped = true;
    for (const socket of this.#waiting) socket.destroy();
  }

  /** Takes no further connections. */
  close(): void {
    this.stopWaiting();
    this.#server.close();
  }

  #take(socket: Socket): void {
    const peer = `${socket.remoteAddress ?? "?"}:${socket.remotePort ?? "?"}`;
    socket.on("error", () => socket.destroy());
    const { maxConnections, onRefused, otherwise } = this.#options;
    if (otherwise !== undefined) {
      const isFull = this.#takers.open >= maxConnections;
      if (isFull || !this.#takers.hand(socket)) otherwise(socket);
    } else if (this.#takers.open + this.#waiting.size >= maxConnections) {
      onRefused(peer, `${maxConnections} connections are open already`);
      socket.destroy();
    } else if (this.#waiting.size > 0 || !this.#takers.hand(socket)) {
      this.#wait(socket, peer);
    }
  }

  #wait(socket: Socket, peer: string): void {
    if (this.#stopped || this.#waiting.size >= MAX_WAITING) {
      this.#options.onRefused(peer, "no process takes it");
      socket.destroy();
      return;
    }
    this.#waiting.add(socket);
    socket.once("close", () => this.#waiting.delete(socket));
    // Nothing is read from it, so this time counts from its arrival.
    socket.setTimeout(WAIT_MS, () => {
      this.#options.onRefused(peer, `no process took it within ${WAIT_MS} ms`);
      socket.destroy();
    });
  }

  #forget(socket: Socket): void {
    this.#waiting.delete(socket);
    socket.setTimeout(0);
  }
}
