import { createServer, connect, type Server, type Socket } from "node:net";
import { once } from "node:events";

/** An address that leads to one server after the other, as that of a master does. */
export class Switch implements AsyncDisposable {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #port: number;

  private constructor(port: number) {
    this.#port = port;
    this.#server = createServer((from) => {
      const to = connect(this.#port, "127.0.0.1");
      for (const [socket, other] of [
        [from, to],
        [to, from],
      ] as const) {
        this.#sockets.add(socket);
        socket.on("error", () => other.destroy());
        socket.on("close", () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
      }
      from.pipe(to).pipe(from);
    });
  }

  static async to(port: number): Promise<Switch> {
    const made = new Switch(port);
    made.#server.listen(0, "127.0.0.1");
    await once(made.#server, "listening");
    return made;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    return `redis://127.0.0.1:${address.port}`;
  }

  /** Leads elsewhere from now on; present connections break. */
  turn(port: number): void {
    this.#port = port;
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.turn(0);
    this.#server.close();
    await once(this.#server, "close");
  }
}
