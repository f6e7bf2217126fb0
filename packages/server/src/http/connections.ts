import { createServer, type Server, type Socket } from "node:net";
import { callerOf } from "../api/caller.ts";
import { Places } from "../doors/places-state.ts";
import { listen } from "../tcp.ts";
import type { Speaker } from "./speaker.ts";

/** Connections above the limit. They get probes answered, and everybody else a reason. */
const MAX_RESERVED = 64;

/** Where connections come from when somebody else listens. */
export interface HttpSource {
  readonly port: number;
  start(take: (socket: Socket) => void): void;
  stop(): void;
}

export interface ConnectionsOptions {
  readonly host: string;
  readonly port: number;
  /** Connections come from here; host and port are not listened on. */
  readonly source?: HttpSource | undefined;
  /**
   * Connections that are open at once. Above it the address with the most of them gives way (see Places), and where none has to,
   * what comes is reserved for probes.
   */
  readonly maxConnections: number;
  /** Whether nothing is read of connections before their TLS does. */
  readonly areUnread: boolean;
  readonly onRefused: (peer: string, why: string) => void;
}

/** What speaks HTTP on connections: on those within the limit, and on the reserved ones. */
export interface Speakers {
  readonly usual: Speaker;
  readonly reserved: Speaker;
}

/**
 * Takes connections and hands them to Node's HTTP.
 *
 * INVARIANT: probes are answered however many connections others hold. Above the limit a few more are taken, for one answer
 * each; the oldest of them is closed for a new one.
 */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #speakers: Speakers;
  readonly #listener: Server;
  readonly #usual = new Set<Socket>();
  readonly #places: Places<Socket>;
  /** In the order of their arrival. */
  readonly #reserved = new Set<Socket>();

  constructor(speakers: Speakers, options: ConnectionsOptions) {
    this.#speakers = speakers;
    this.#options = options;
    this.#places = new Places(options.maxConnections);
    this.#listener = createServer({ noDelay: true, pauseOnConnect: options.areUnread }, (socket) =>
      this.take(socket),
    );
    // Node checks the time-outs of an HTTP server from its event `listening` on, which nothing else emits here.
    for (const { server } of [speakers.usual, speakers.reserved]) server.emit("listening");
  }

  /** Fulfils with the port; rejects when the address cannot be had. */
  listen(): Promise<number> {
    const { host, port, source } = this.#options;
    if (source !== undefined) {
      source.start((socket) => this.take(socket));
      return Promise.resolve(source.port);
    }
    return listen(this.#listener, { host, port, backlog: 1_024 }, (error) =>
      this.#options.onRefused("", error.message),
    );
  }

  /** Connections open now. */
  get open(): number {
    return this.#usual.size + this.#reserved.size;
  }

  take(socket: Socket): void {
    const taken = this.#places.take(callerOf(peerOf(socket)), socket);
    if (taken === "no place is free") {
      this.reserve(socket);
      return;
    }
    const { place, loser } = taken;
    if (loser !== undefined) this.#giveWay(loser);
    socket.once("close", () => this.#places.free(place));
    this.#hand(socket, this.#usual, this.#speakers.usual);
  }

  /** Takes a connection for probes only. */
  reserve(socket: Socket): void {
    if (this.#reserved.size >= MAX_RESERVED) {
      const [oldest] = this.#reserved;
      this.#options.onRefused(
        peerOf(oldest),
        `${this.#options.maxConnections} connections are open already`,
      );
      oldest?.destroy();
    }
    this.#hand(socket, this.#reserved, this.#speakers.reserved);
  }

  /** Takes no further connections. */
  stop(): void {
    this.#options.source?.stop();
    this.#listener.close();
  }

  /** Closes what is still open. */
  destroy(): void {
    for (const sockets of [this.#usual, this.#reserved]) {
      for (const socket of sockets) socket.destroy();
    }
    // This ends their looks at the times.
    for (const { server } of [this.#speakers.usual, this.#speakers.reserved]) server.close();
  }

  #giveWay(loser: Socket): void {
    const why = `${this.#options.maxConnections} connections are open already, the most of them from its address`;
    this.#options.onRefused(peerOf(loser), why);
    loser.destroy();
  }

  #hand(socket: Socket, sockets: Set<Socket>, speaker: Speaker): void {
    socket.on("error", () => socket.destroy());
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    speaker.take(socket);
  }
}

function peerOf(socket: Socket | undefined): string {
  return `${socket?.remoteAddress ?? "?"}:${socket?.remotePort ?? "?"}`;
}
