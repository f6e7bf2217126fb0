import { Socket } from "node:net";
import pg from "pg";

/** A client whose socket can be destroyed, which is the one way to bound every wait. */
export class Connection extends pg.Client {
  readonly #socket: Socket;

  constructor(config?: pg.ClientConfig) {
    const socket = new Socket();
    super({ ...config, stream: () => socket });
    this.#socket = socket;
    // A pool listens only to idle connections. One that is given up while it connects ends later, when nobody listens,
    // and its error would end the process; whoever works on a connection learns of its end by the work.
    this.on("error", () => undefined);
  }

  /** As a pool calls it. */
  override connect(): Promise<pg.Client>;
  override connect(answer: (error: Error) => void): void;
  override connect(answer?: (error: Error) => void): Promise<pg.Client> | void {
    if (answer === undefined) return super.connect();
    super.connect((error: Error | null) => {
      // The driver keeps the socket when it gives up by itself, for want of a password, and the process would stay.
      if (error !== null) this.destroy();
      answer(error as Error);
    });
  }

  /** Ends the connection at once, in whatever state it is. What it was doing has an unknown outcome. */
  destroy(): void {
    this.#socket.destroy();
  }
}

/**
 * The driver takes these modes for verify-full, and says so in eight lines at each start. It takes them otherwise with
 * uselibpqcompat.
 */
export function withPlainSslMode(url: string): string {
  if (/[?&]uselibpqcompat=true(?:&|$)/.test(url)) return url;
  return url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, "$1verify-full");
}
