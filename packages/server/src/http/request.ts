import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { namesNow, NOTHING_SHOWN, shownBy, type ShownNames } from "../tls/names.ts";
import { HttpRefusal } from "./answers.ts";
import type { HttpRequest } from "./route.ts";

/** The largest valid request has some 5 KiB in bytes, and several times that in JSON with all its letters escaped. */
const MAX_BODY_BYTES = 64 * 1_024;

/** What is known of a connection that has sent a request. */
export class HttpConnection {
  /** When it is to end, on the server's Clock. */
  readonly endsAt: number;
  /** Requests that are being worked on. */
  working = 0;
  /** Requests whose answers are not sent. */
  unanswered = 0;
  readonly #socket: Socket;
  readonly #takesCommonNames: boolean;
  #shown: ShownNames | undefined;

  constructor(socket: Socket, endsAt: number, takesCommonNames: boolean) {
    this.#socket = socket;
    this.endsAt = endsAt;
    this.#takesCommonNames = takesCommonNames;
  }

  /** Whether its certificate was verified. */
  get isAuthorized(): boolean {
    return this.#socket instanceof TLSSocket && this.#socket.authorized;
  }

  /** Reading a certificate takes longer than a call, so it is done once. */
  certificateNames(): readonly string[] {
    if (this.#shown === undefined) {
      const socket = this.#socket;
      this.#shown =
        socket instanceof TLSSocket && socket.authorized
          ? shownBy(socket.getPeerCertificate(), this.#takesCommonNames)
          : NOTHING_SHOWN;
    }
    return namesNow(this.#shown);
  }
}

/** A request of Node's, as routes see it. */
export class NodeRequest implements HttpRequest {
  readonly path: string;
  readonly query: string;
  readonly peer: string;
  readonly #message: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #connection: HttpConnection;
  /** Whether its caller waits for a word before it sends the body. */
  readonly #isExpecting: boolean;

  constructor(
    message: IncomingMessage,
    response: ServerResponse,
    connection: HttpConnection,
    isExpecting: boolean,
  ) {
    const { url = "", socket } = message;
    const mark = url.indexOf("?");
    this.path = mark < 0 ? url : url.slice(0, mark);
    this.query = mark < 0 ? "" : url.slice(mark + 1);
    this.peer = `${socket.remoteAddress ?? "?"}:${socket.remotePort ?? "?"}`;
    this.#message = message;
    this.#response = response;
    this.#connection = connection;
    this.#isExpecting = isExpecting;
  }

  get method(): string {
    return this.#message.method ?? "";
  }

  get headers(): HttpRequest["headers"] {
    return this.#message.headers;
  }

  certificateNames(): readonly string[] {
    return this.#connection.certificateNames();
  }

  onGone(listener: () => void): void {
    this.#response.once("close", () => {
      if (!this.#response.writableFinished) listener();
    });
  }

  body(): Promise<Buffer> {
    if (Number(this.headers["content-length"] ?? 0) > MAX_BODY_BYTES) {
      return Promise.reject(tooLarge());
    }
    if (this.#isExpecting) this.#response.writeContinue();
    return bytesOf(this.#message);
  }
}

/** Leaves what is too much in the socket: whoever iterates a message and stops destroys it, and the answer with it. */
function bytesOf(message: IncomingMessage): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let length = 0;
  const onData = (chunk: Buffer): void => {
    length += chunk.length;
    chunks.push(chunk);
    if (length <= MAX_BODY_BYTES) return;
    message.off("data", onData);
    reject(tooLarge());
  };
  message.on("data", onData);
  message.once("end", () => resolve(Buffer.concat(chunks, length)));
  // After an end nobody hears of it.
  message.once("close", () =>
    reject(new HttpRefusal(400, "canceled", "the body did not come whole")),
  );
  message.once("error", () => undefined);
  return promise;
}

function tooLarge(): HttpRefusal {
  const text = `the body is larger than ${MAX_BODY_BYTES} bytes`;
  return new HttpRefusal(413, "resource_exhausted", text);
}
