// A TCP proxy that lets everything through later: a store far away.
import { connect, createServer, type Server, type Socket } from "node:net";

/** Passes bytes both ways, each half of the delay late, in order. Close it. */
export class DelayProxy implements AsyncDisposable {
  /** Added to each round trip from now on, in milliseconds. */
  delayMs = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(target: { host: string; port: number }) {
    this.#server = createServer({ noDelay: true, allowHalfOpen: true }, (near) => {
      const far = connect({ ...target, noDelay: true, allowHalfOpen: true });
      this.#pass(near, far);
      this.#pass(far, near);
    });
  }

  static async start(target: { host: string; port: number }): Promise<DelayProxy> {
    const proxy = new DelayProxy(target);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once("error", reject);
      proxy.#server.listen(0, "127.0.0.1", resolve);
    });
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    if (typeof address !== "object" || address === null) throw new Error("the proxy is closed");
    return address.port;
  }

  #pass(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    // Later bytes never overtake earlier ones, also when the delay becomes shorter.
    let notBefore = 0;
    const later = (run: () => void): void => {
      notBefore = Math.max(notBefore, performance.now() + this.delayMs / 2);
      const waitMs = notBefore - performance.now();
      if (waitMs <= 0) run();
      else setTimeout(run, waitMs);
    };
    from.on("data", (bytes) => later(() => to.write(bytes)));
    from.once("end", () => later(() => to.end()));
    from.on("error", () => to.destroy());
    from.once("close", () => this.#sockets.delete(from));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
