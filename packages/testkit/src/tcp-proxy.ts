import { createServer, connect, type Server, type Socket } from "node:net";

interface Target {
  readonly host: string;
  readonly port: number;
}

/** Where each new connection leads; a function is asked for each. */
type Way = Target | (() => Target);

/**
 * A way to a TCP port of this machine that a test can cut without anybody being told, as a network does, or turn to another
 * port, as a name or a balancer does.
 */
export class TcpProxy {
  readonly port: number;
  readonly #server: Server;
  readonly #pairs: Set<readonly [Socket, Socket]>;
  #target: Way;
  #isCut = false;
  #accepted = 0;
  #sentBytes = 0;

  private constructor(
    server: Server,
    { port, target }: { readonly port: number; readonly target: Way },
    pairs: Set<readonly [Socket, Socket]>,
  ) {
    this.#server = server;
    this.port = port;
    this.#target = target;
    this.#pairs = pairs;
  }

  /** Close it. */
  static async start(target: Way): Promise<TcpProxy> {
    const pairs = new Set<readonly [Socket, Socket]>();
    const server = createServer({ pauseOnConnect: true }, (near) => {
      const { port, host } = typeof proxy.#target === "function" ? proxy.#target() : proxy.#target;
      const far = connect(port, host);
      proxy.#accepted++;
      near.on("data", ({ length }) => (proxy.#sentBytes += length));
      const pair = [near, far] as const;
      pairs.add(pair);
      for (const [one, other] of [pair, [far, near] as const]) {
        one.on("error", () => undefined);
        one.on("data", (chunk) => void other.write(chunk));
        one.on("close", (hasFailed) => {
          // What is on its way arrives before the end does.
          if (hasFailed) other.destroy();
          else other.end();
          pairs.delete(pair);
        });
      }
      if (proxy.#isCut) pauseBoth(pair);
      else near.resume();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const proxy = new TcpProxy(server, { port: address.port, target }, pairs);
    return proxy;
  }

  /** How many connections there were. */
  get accepted(): number {
    return this.#accepted;
  }

  /** How much those sent that made the connections. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** From now on nothing gets through, in either direction, and no connection ends by that. */
  cut(): void {
    this.#isCut = true;
    for (const pair of this.#pairs) pauseBoth(pair);
  }

  /** What was held back arrives now. */
  mend(): void {
    this.#isCut = false;
    for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  /** New connections lead to another port. Those that there are end, unless `keep` says otherwise. */
  pointAt(target: Target, { keep = false }: { readonly keep?: boolean } = {}): void {
    this.#target = target;
    if (!keep) this.#endAll();
  }

  #endAll(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }

  async close(): Promise<void> {
    this.#endAll();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

function pauseBoth(pair: readonly [Socket, Socket]): void {
  for (const socket of pair) socket.pause();
}
