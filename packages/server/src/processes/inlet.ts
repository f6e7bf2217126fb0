import type { Socket } from "node:net";

/** Where the connections of a process come in; the gRPC door takes them from here instead of listening. */
export class Inlet {
  /** The port they arrived on. */
  readonly port: number;
  readonly #onCounts: (taken: number, closed: number) => void;
  #take: ((socket: Socket) => void) | undefined;
  #taken = 0;
  #closed = 0;
  #isTelling = false;

  constructor(port: number, onCounts: (taken: number, closed: number) => void) {
    this.port = port;
    this.#onCounts = onCounts;
  }

  start(take: (socket: Socket) => void): void {
    this.#take = take;
  }

  /** Connections that come later are closed. */
  stop(): void {
    this.#take = undefined;
  }

  /** A connection of the parent; undefined when its other end closed it on the way. */
  receive(socket: Socket | undefined): void {
    this.#taken++;
    this.#tell();
    if (socket === undefined) {
      this.#closed++;
      return;
    }
    socket.once("close", () => {
      this.#closed++;
      this.#tell();
    });
    if (this.#take === undefined) socket.destroy();
    else this.#take(socket);
  }

  /** Once for all of one turn. */
  #tell(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    setImmediate(() => {
      this.#isTelling = false;
      this.#onCounts(this.#taken, this.#closed);
    });
  }
}
