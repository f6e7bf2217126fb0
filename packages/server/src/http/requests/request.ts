import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { callerOf } from "../../api/caller.ts";
import { namesNow, NOTHING_SHOWN, shownBy, type ShownNames } from "../../tls/names.ts";
import { HttpRefusal, sayLast } from "../answers.ts";
import { Body } from "./body.ts";
import { HEADERS_MS, Held, type HeldOfAll, MAX_HEADERS } from "./held.ts";
import type { HttpRequest } from "../route.ts";

/** Whoever was silent for so long has begun no request: it must have told its headers in less. */
const RESTED_MS: number = HEADERS_MS + 2_000;

export interface ConnectionParts {
  /** When it is to end, on the server's Clock. */
  readonly endsAt: number;
  readonly takesCommonNames: boolean;
  readonly held: HeldOfAll;
}

/** What is known of a connection. */
export class HttpConnection {
  /** When it is to end, on the server's Clock. */
  readonly endsAt: number;
  /** Address and port. */
  readonly peer: string;
  /** Who it is of. */
  readonly caller: string;
  /** Requests that are being worked on. */
  working = 0;
  /** Requests whose answers are not sent. */
  unanswered = 0;
  /** The request that came last, until it is answered and whole. */
  #last: NodeRequest | undefined;
  readonly #socket: Socket;
  readonly #takesCommonNames: boolean;
  readonly #held: Held;
  #cameAt = 0;
  #shown: ShownNames | undefined;

  constructor(socket: Socket, { endsAt, takesCommonNames, held }: ConnectionParts) {
    this.#socket = socket;
    this.endsAt = endsAt;
    this.peer = `${socket.remoteAddress ?? "?"}:${socket.remotePort ?? "?"}`;
    this.caller = callerOf(this.peer);
    this.#takesCommonNames = takesCommonNames;
    this.#held = new Held(held);
    socket.once("close", () => this.#held.end());
  }

  /** A chunk came, of which nothing is read yet. */
  came(bytes: number, now: number): void {
    this.#cameAt = now;
    this.#held.came(bytes);
    // What is read only to be dropped is not kept.
    if (this.unfinished > 0 && this.#last?.isWanted === false)
      this.#held.forgetBefore(this.#held.chunk);
  }

  /** Its next request. */
  request(message: IncomingMessage, response: ServerResponse, isExpecting: boolean): NodeRequest {
    const request = new NodeRequest(message, response, this, {
      isExpecting,
      beganIn: this.#held.chunk,
      onKept: (bytes) => this.#held.keep(bytes),
    });
    this.working++;
    this.unanswered++;
    this.#last = request;
    return request;
  }

  answered(request: NodeRequest): void {
    this.unanswered--;
    request.forget();
    // Answers go out in the order of the requests.
    this.#held.forgetBefore(request.beganIn);
    if (this.#last === request && request.isWhole) this.#last = undefined;
  }

  /** Bytes of requests that it keeps, above what is usual. */
  keptAt(now: number): number {
    const isAtRest = this.unanswered === 0 && this.unfinished === 0;
    if (isAtRest && now - this.#cameAt > RESTED_MS) this.#held.rested();
    return this.#held.bytes;
  }

  /** Requests whose rest comes yet: the last one, or none. */
  get unfinished(): number {
    return this.#last?.isWhole === false ? 1 : 0;
  }

  /**
   * What comes cannot be read any more, or there is no room for it. An answer may be on its way, or was sent before its request
   * was whole: two would be taken for one. So a request whose body comes is refused in its turn.
   */
  fail(why: HttpRefusal): void {
    const isUnanswered = this.unanswered > 0;
    const isUnfinished = this.unfinished > 0;
    if (isUnanswered && isUnfinished) {
      this.#last?.breakOff(why);
      return;
    }
    this.#held.end();
    if (isUnanswered || isUnfinished) this.#socket.destroy();
    else sayLast(this.#socket, why);
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

interface RequestParts {
  readonly isExpecting: boolean;
  readonly beganIn: number;
  /** Is told how much more memory its body takes. */
  readonly onKept: (bytes: number) => void;
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
  /** Where the chunk begins in which it began. */
  readonly beganIn: number;
  /** Whether its caller waits for a word before it sends the body. */
  readonly #isExpecting: boolean;
  readonly #onKept: (bytes: number) => void;
  #body: Body | undefined;
  /** Why its body is not read. */
  #broken: HttpRefusal | undefined;

  constructor(
    message: IncomingMessage,
    response: ServerResponse,
    connection: HttpConnection,
    { isExpecting, beganIn, onKept }: RequestParts,
  ) {
    const { host, target } = targetOf(message);
    const mark = target.indexOf("?");
    this.path = mark < 0 ? target : target.slice(0, mark);
    this.query = mark < 0 ? "" : target.slice(mark + 1);
    this.headers = host === undefined ? message.headers : { ...message.headers, host };
    this.peer = connection.peer;
    this.beganIn = beganIn;
    this.#message = message;
    this.#response = response;
    this.#connection = connection;
    this.#isExpecting = isExpecting;
    this.#onKept = onKept;
  }

  get method(): string {
    return this.#message.method ?? "";
  }

  /** Whether its body came to its end. */
  get isWhole(): boolean {
    return this.#message.complete;
  }

  /** Whether somebody waits for the rest of its body. */
  get isWanted(): boolean {
    return this.#body?.isComing === true;
  }

  /** No more of it comes. A route that reads the body refuses it for that; the answer is the last one of the connection. */
  breakOff(why: HttpRefusal): void {
    this.#response.shouldKeepAlive = false;
    this.#broken = why;
    this.#body?.breakOff(why);
  }

  /** It is answered. */
  forget(): void {
    this.#body?.forget();
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
    if (this.#broken !== undefined) return Promise.reject(this.#broken);
    this.#body = new Body(this.#message, this.#onKept);
    if (this.#isExpecting && this.#body.isComing) this.#response.writeContinue();
    return this.#body.whole;
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

/** Releases of Node that do not refuse more have dropped what is above. */
export function assertHeaders({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">): void {
  if (rawHeaders.length <= 2 * MAX_HEADERS) return;
  throw new HttpRefusal(
    431,
    "invalid_argument",
    `the request has more than ${MAX_HEADERS} headers`,
  );
}
