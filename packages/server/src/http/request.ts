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
  /** The request that came last, until it is answered and whole. */
  #last: NodeRequest | undefined;
  readonly #socket: Socket;
  readonly #takesCommonNames: boolean;
  #shown: ShownNames | undefined;

  constructor(socket: Socket, endsAt: number, takesCommonNames: boolean) {
    this.#socket = socket;
    this.endsAt = endsAt;
    this.#takesCommonNames = takesCommonNames;
  }

  begun(request: NodeRequest): void {
    this.working++;
    this.unanswered++;
    this.#last = request;
  }

  answered(request: NodeRequest): void {
    this.unanswered--;
    if (this.#last === request && request.isWhole) this.#last = undefined;
  }

  /** Requests whose rest comes yet: the last one, or none. */
  get unfinished(): number {
    return this.#last?.isWhole === false ? 1 : 0;
  }

  /** What comes cannot be read any more. The request that is not whole is refused for it, unless it is answered already. */
  breakOff(why: HttpRefusal): void {
    this.#last?.breakOff(why);
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
  readonly headers: HttpRequest["headers"];
  readonly #message: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #connection: HttpConnection;
  /** Whether its caller waits for a word before it sends the body. */
  readonly #isExpecting: boolean;
  /** Rejects for what broke the body off. */
  readonly #broken = Promise.withResolvers<never>();

  constructor(
    message: IncomingMessage,
    response: ServerResponse,
    connection: HttpConnection,
    isExpecting: boolean,
  ) {
    const { socket } = message;
    const { host, target } = targetOf(message);
    const mark = target.indexOf("?");
    this.path = mark < 0 ? target : target.slice(0, mark);
    this.query = mark < 0 ? "" : target.slice(mark + 1);
    this.headers = host === undefined ? message.headers : { ...message.headers, host };
    this.peer = `${socket.remoteAddress ?? "?"}:${socket.remotePort ?? "?"}`;
    this.#message = message;
    this.#response = response;
    this.#connection = connection;
    this.#isExpecting = isExpecting;
    // Most bodies are not broken off, and some are not read.
    this.#broken.promise.catch(() => undefined);
  }

  get method(): string {
    return this.#message.method ?? "";
  }

  /** Whether its body came to its end. */
  get isWhole(): boolean {
    return this.#message.complete;
  }

  /** No more of it comes. A route that reads the body refuses it for that; the answer is the last one of the connection. */
  breakOff(why: HttpRefusal): void {
    this.#response.shouldKeepAlive = false;
    this.#broken.reject(why);
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
    return Promise.race([bytesOf(this.#message), this.#broken.promise]);
  }
}

const ABSOLUTE = /^https?:\/\/([^/?]*)(.*)$/i;

/**
 * What a request asks for. Proxies are asked in the absolute form, and servers must take it too: the host in it counts then, and
 * not the header (RFC 9112, 3.2.2).
 */
function targetOf({ url = "" }: IncomingMessage): { host: string | undefined; target: string } {
  const [, host, target = ""] = ABSOLUTE.exec(url) ?? [];
  if (host === undefined) return { host, target: url };
  return { host, target: target.startsWith("/") ? target : `/${target}` };
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
