// A port before a Redis, which lets its replicas hear of everything as late as a test wants.
import { connect, createServer, type Server, type Socket } from "node:net";

/** A replica begins with this. Every other connection passes at once. */
const BEGIN = /\bPSYNC\b/i;

export class ReplicationDoor {
  readonly port: number;
  /** How late replicas hear. What they have not heard when the master dies is lost. */
  lagMs = 0;
  readonly #target: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(port: number, target: number) {
    this.port = port;
    this.#target = target;
    this.#server = createServer((near) => this.#join(near));
  }

  static async open(port: number, target: number): Promise<ReplicationDoor> {
    const door = new ReplicationDoor(port, target);
    await new Promise<void>((resolve) => door.#server.listen(port, "127.0.0.1", resolve));
    return door;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #join(near: Socket): void {
    const far = connect(this.#target, "127.0.0.1");
    let isReplica = false;
    let dueAt = 0;
    const pair = [near, far] as const;
    const end = (): void => {
      for (const socket of pair) {
        socket.destroy();
        this.#sockets.delete(socket);
      }
    };
    for (const socket of pair) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", end);
      socket.on("close", end);
    }
    near.on("data", (chunk) => {
      isReplica ||= BEGIN.test(chunk.toString("latin1"));
      far.write(chunk);
    });
    far.on("data", (chunk) => {
      if (!isReplica) {
        near.write(chunk);
        return;
      }
      // In order, also when the lag was made shorter.
      const now = performance.now();
      dueAt = Math.max(dueAt, now + this.lagMs);
      setTimeout(() => {
        if (!near.destroyed) near.write(chunk);
      }, dueAt - now);
    });
  }
}
