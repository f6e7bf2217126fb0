import { Socket } from "node:net";
import pg from "pg";

/** A request to cancel, as the protocol has it: its length, its code, whose work and by which right. */
const CANCEL_BYTES = 16;
const CANCEL_CODE = 80_877_102;
const CANCEL_MS = 1_000;

/** What the driver knows of the server's side of a connection, and keeps from its types. */
interface ServerSide {
  readonly host: string;
  readonly port: number;
  readonly processID: number | null;
  readonly secretKey: number | null;
}

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

  /**
   * Asks the server to give up what it does for this connection, and ends the connection. Its end alone does not end a
   * commit's wait for a standby: such sessions keep their locks, and pile up until the server takes no more. A wait that is
   * given up leaves its commit on this server only, which is one of the ways to an unknown outcome.
   */
  abandon(): void {
    const { host, port, processID, secretKey } = this as unknown as ServerSide;
    this.destroy();
    if (host.startsWith("/") || processID === null || secretKey === null) return;
    const request = Buffer.alloc(CANCEL_BYTES);
    [CANCEL_BYTES, CANCEL_CODE, processID, secretKey].forEach((word, at) => {
      request.writeInt32BE(word, at * 4);
    });
    const socket = new Socket();
    socket.on("error", () => undefined);
    socket.setTimeout(CANCEL_MS, () => socket.destroy());
    socket.connect(port, host, () => socket.end(request));
    socket.unref();
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
  return url.replace(/([?&]sslmode=)(?:require|verify-ca)(?=&|$)/, "$1verify-full");
}
