import { createServer, type Server, type Socket } from "node:net";
import { bounded } from "@idmint/core";
import { listen } from "../tcp.ts";
import { nodeTimers } from "../timers.ts";
import { callerOf } from "../api/caller.ts";
import { Places } from "./places-state.ts";

/** Bytes of the HTTP/2 client preface; a caller that has not sent that much is not one. */
const PREFACE_BYTES = 24;

/** Where connections come from when somebody else listens. */
export interface ConnectionSource {
  readonly port: number;
  /** `giveWay`: closes a connection whose place somebody else has now. */
  start(take: (socket: Socket) => void, giveWay?: (socket: Socket) => void): void;
  stop(): void;
}

export interface ListenerOptions {
  readonly host: string;
  readonly port: number;
  /** Connections come from here; host and port are not listened on. */
  readonly source?: ConnectionSource | undefined;
  /** Connections that are open at once; above it, the address with the most of them gives way (see Places). */
  readonly maxConnections: number;
  /** Whether the door reads connections by itself, now or later: nothing is read of them before. */
  readonly areUnread: boolean;
  /** How long a new connection may take to send its preface. */
  readonly prefaceTimeoutMs: number;
  /** Closes a connection of the door whose place somebody else has now. */
  readonly giveWay: (socket: Socket) => void;
  readonly onRefused: (peer: string, why: string) => void;
}

/** Takes connections, at most so many at once, and hands them to a door. Those that say nothing are closed. */
export class Listener {
  readonly #door: (socket: Socket) => void;
  readonly #options: ListenerOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #places: Places<Socket>;
  #onEmpty: (() => void) | undefined;

  constructor(door: (socket: Socket) => void, options: ListenerOptions) {
    this.#door = door;
    this.#options = options;
    this.#places = new Places(options.maxConnections);
    this.#server = createServer({ noDelay: true, pauseOnConnect: options.areUnread }, (socket) =>
      this.#take(socket),
    );
  }

  /** Fulfils with the port; rejects when the address cannot be had. */
  listen(): Promise<number> {
    const { host, port, source } = this.#options;
    if (source !== undefined) {
      source.start(
        (socket) => this.#take(socket),
        (socket) => this.#giveWay(socket),
      );
      return Promise.resolve(source.port);
    }
    return listen(this.#server, { host, port, backlog: 1_024 }, (error) =>
      this.#options.onRefused("", error.message),
    );
  }

  /** Connections open now. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Takes no further connections. */
  stop(): void {
    this.#options.source?.stop();
    this.#server.close();
  }

  /** Fulfils when no connection is open, or after `boundMs`. */
  empty(boundMs: number): Promise<void> {
    if (this.#sockets.size === 0) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onEmpty = resolve;
    return bounded(promise, boundMs, nodeTimers, () => undefined);
  }

  /** Closes what is still open. */
  destroy(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #take(socket: Socket): void {
    const peer = `${socket.remoteAddress ?? "?"}:${socket.remotePort ?? "?"}`;
    socket.on("error", () => socket.destroy());
    const taken = this.#places.take(callerOf(peer), socket);
    if (taken === "no place is free") {
      this.#options.onRefused(peer, `${this.#options.maxConnections} connections are open already`);
      socket.destroy();
      return;
    }
    if (taken.loser !== undefined) this.#giveWay(taken.loser);
    this.#sockets.add(socket);
    const timer = setTimeout(() => {
      if (socket.bytesRead >= PREFACE_BYTES) return;
      this.#options.onRefused(peer, "it did not say anything");
      socket.destroy();
    }, this.#options.prefaceTimeoutMs);
    timer.unref();
    socket.once("close", () => {
      clearTimeout(timer);
      this.#places.free(taken.place);
      this.#sockets.delete(socket);
      if (this.#sockets.size === 0) this.#onEmpty?.();
    });
    this.#door(socket);
  }

  #giveWay(loser: Socket): void {
    const peer = `${loser.remoteAddress ?? "?"}:${loser.remotePort ?? "?"}`;
    const { maxConnections, onRefused, giveWay } = this.#options;
    onRefused(
      peer,
      `${maxConnections} connections are open already, the most of them from its address`,
    );
    giveWay(loser);
  }
}
