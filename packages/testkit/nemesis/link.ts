import { connect, createServer, type Server, type Socket } from "node:net";

/** `there`: what is sent by those who connect; `back`: what they are answered. */
export type Way = "back" | "there";

interface Pipe {
  readonly way: Way;
  readonly from: Socket;
  /** What waits until the way is whole again. */
  readonly held: (() => void)[];
}

/**
 * A way to a TCP port of this machine that may be slow, or cut in either direction. Nobody is told of a cut: what is sent waits, and
 * arrives when the way is whole, as over a network whose packets are sent again. Close it.
 */
export class Link {
  readonly port: number;
  /** Added in each direction, in milliseconds. */
  delayMs = 0;
  readonly #server: Server;
  readonly #pipes: Set<Pipe>;
  #cut: ReadonlySet<Way> = new Set();

  private constructor(server: Server, port: number, pipes: Set<Pipe>) {
    this.#server = server;
    this.port = port;
    this.#pipes = pipes;
  }

  /** `targetPort` is asked for each connection. */
  static async open(targetPort: () => number): Promise<Link> {
    const pipes = new Set<Pipe>();
    const server = createServer({ noDelay: true, allowHalfOpen: true }, (near) => {
      const options = { port: targetPort(), host: "127.0.0.1", noDelay: true, allowHalfOpen: true };
      const far = connect(options);
      link.#pass("there", near, far);
      link.#pass("back", far, near);
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, "127.0.0.1", resolve);
    });
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const link = new Link(server, address.port, pipes);
    return link;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  cut(ways: readonly Way[]): void {
    this.#cut = new Set(ways);
    for (const { way, from } of this.#pipes) if (this.#cut.has(way)) from.pause();
  }

  mend(): void {
    this.#cut = new Set();
    for (const { from, held } of this.#pipes) {
      for (const run of held.splice(0)) run();
      from.resume();
    }
  }

  async close(): Promise<void> {
    for (const { from } of this.#pipes) from.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #pass(way: Way, from: Socket, to: Socket): void {
    const pipe: Pipe = { way, from, held: [] };
    this.#pipes.add(pipe);
    // What was sent later never overtakes, also when the delay becomes shorter.
    let notBefore = 0;
    const later = (run: () => void): void => {
      const whole = (): void => {
        if (this.#cut.has(way)) pipe.held.push(run);
        else run();
      };
      notBefore = Math.max(notBefore, performance.now() + this.delayMs);
      const waitMs = notBefore - performance.now();
      if (waitMs <= 0) whole();
      else setTimeout(whole, waitMs);
    };
    from.on("data", (bytes) => later(() => to.write(bytes)));
    from.once("end", () => later(() => to.end()));
    from.on("error", () => later(() => to.destroy()));
    from.once("close", () => later(() => this.#pipes.delete(pipe)));
    if (this.#cut.has(way)) from.pause();
  }
}
