// Stands before the peer port of a member of an etcd, so that tests can cut members off from each other without root.
import { connect, createServer, type Server, type Socket } from "node:net";

const HEAD_LIMIT = 16_384;
/** Each request of the Raft protocol says which member it comes from. */
const FROM = /\r\nx-server-from: ([0-9a-f]+)\r\n/i;

/** Whether what member `from` (hexadecimal id, empty: unknown) sends may reach this one. */
export type MayPass = (from: string) => boolean;

export class PeerProxy {
  readonly #server: Server;
  readonly #links = new Map<Socket, string>();
  readonly #mayPass: MayPass;

  private constructor(target: number, mayPass: MayPass) {
    this.#mayPass = mayPass;
    this.#server = createServer((socket) => this.#accept(socket, target));
  }

  static async listen(port: number, target: number, mayPass: MayPass): Promise<PeerProxy> {
    const proxy = new PeerProxy(target, mayPass);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once("error", reject);
      proxy.#server.listen(port, "127.0.0.1", resolve);
    });
    return proxy;
  }

  /** Ends the connections that may not pass any more. */
  recheck(): void {
    for (const [socket, from] of this.#links) if (!this.#mayPass(from)) socket.destroy();
  }

  async close(): Promise<void> {
    for (const socket of this.#links.keys()) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(socket: Socket, target: number): void {
    let head = Buffer.alloc(0);
    this.#links.set(socket, "");
    socket.on("error", () => undefined);
    socket.once("close", () => this.#links.delete(socket));
    const onData = (chunk: Buffer): void => {
      head = Buffer.concat([head, chunk]);
      if (!head.includes("\r\n\r\n") && head.length < HEAD_LIMIT) return;
      socket.off("data", onData);
      socket.pause();
      const from = FROM.exec(head.toString("latin1"))?.[1] ?? "";
      this.#links.set(socket, from);
      if (!this.#mayPass(from)) {
        socket.destroy();
        return;
      }
      const onward = connect(target, "127.0.0.1");
      onward.on("error", () => socket.destroy());
      onward.once("close", () => socket.destroy());
      socket.once("close", () => onward.destroy());
      onward.write(head);
      socket.pipe(onward);
      onward.pipe(socket);
    };
    socket.on("data", onData);
  }
}
