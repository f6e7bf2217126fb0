import type { Socket } from "node:net";

/** Tells the parent which connections arrived and which ended, once for all of one turn. */
export class Tally {
  readonly #tell: (taken: readonly number[], closed: readonly number[]) => void;
  #taken: number[] = [];
  #closed: number[] = [];

  constructor(tell: (taken: readonly number[], closed: readonly number[]) => void) {
    this.#tell = tell;
  }

  taken(number: number): void {
    this.#tellSoon();
    this.#taken.push(number);
  }

  closed(number: number): void {
    this.#tellSoon();
    this.#closed.push(number);
  }

  #tellSoon(): void {
    if (this.#taken.length + this.#closed.length > 0) return;
    setImmediate(() => {
      this.#tell(this.#taken, this.#closed);
      this.#taken = [];
      this.#closed = [];
    });
  }
}

/** Where the connections of a process come in; a door takes them from here instead of listening. */
export class Inlet {
  /** The port they arrived on. */
  readonly port: number;
  readonly #tally: Tally;
  /** By the numbers that the parent gave them. */
  readonly #open = new Map<number, Socket>();
  #take: ((socket: Socket) => void) | undefined;
  #giveWay = (socket: Socket): void => void socket.destroy();

  constructor(port: number, tally: Tally) {
    this.port = port;
    this.#tally = tally;
  }

  /** `giveWay`: closes a connection whose place somebody else has now. */
  start(take: (socket: Socket) => void, giveWay?: (socket: Socket) => void): void {
    this.#take = take;
    if (giveWay !== undefined) this.#giveWay = giveWay;
  }

  /** Connections that come later are closed. */
  stop(): void {
    this.#take = undefined;
  }

  /** A connection of the parent; undefined when its other end closed it on the way. */
  receive(number: number, socket: Socket | undefined): void {
    this.#tally.taken(number);
    if (socket === undefined) {
      this.#tally.closed(number);
      return;
    }
    this.#open.set(number, socket);
    socket.once("close", () => {
      this.#open.delete(number);
      this.#tally.closed(number);
    });
    if (this.#take === undefined) socket.destroy();
    else this.#take(socket);
  }

  /** The parent gave this one's place to somebody else. It may be gone by itself. */
  giveWay(number: number): void {
    const socket = this.#open.get(number);
    if (socket !== undefined) this.#giveWay(socket);
  }
}
