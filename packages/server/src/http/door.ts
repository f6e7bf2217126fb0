import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Timers } from "@idmint/core";
import { InFlight } from "../in-flight.ts";
import { listen } from "../tcp.ts";
import { HttpRefusal, refusalAnswer } from "./answers.ts";
import { NodeRequest } from "./request.ts";
import type { HttpAnswer, HttpRequest, Route } from "./route.ts";

/** Requests are small, and nobody may be slow about them. */
const LIMITS = {
  maxHeaderSize: 16 * 1_024,
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 1_000,
  // The door answers by itself, in JSON.
  requireHostHeader: false,
  joinDuplicateHeaders: true,
};
/** Of a body that nobody wants. */
const MAX_DROPPED_BYTES = 1_024 * 1_024;

export interface HttpDoorOptions {
  readonly host: string;
  readonly port: number;
  readonly maxConnections: number;
}

/** Listens for HTTP, bounds what one connection may take, and hands requests to its routes. */
export class HttpDoor {
  readonly #server: Server;
  readonly #options: HttpDoorOptions;
  readonly #routes: readonly Route[];
  readonly #inFlight: InFlight;

  constructor(routes: readonly Route[], options: HttpDoorOptions, timers: Timers) {
    this.#routes = routes;
    this.#options = options;
    this.#inFlight = new InFlight(timers);
    // An import of node:http reads all it exports, and so loads Node's HTTP client too: 14 MB that nobody uses here.
    const { createServer } = process.getBuiltinModule("node:http");
    this.#server = createServer(LIMITS, (request, response) =>
      this.#take(request, response, false),
    );
    this.#server.on("checkContinue", (request, response) => this.#take(request, response, true));
    this.#server.maxConnections = options.maxConnections;
  }

  /** Fulfils with the port; rejects when the address cannot be had. */
  listen(): Promise<number> {
    const { host, port } = this.#options;
    return listen(this.#server, { host, port, backlog: 1_024 }, () => undefined);
  }

  /** Fulfils when no request is in flight, or after `boundMs`. */
  idle(boundMs: number): Promise<void> {
    return this.#inFlight.idle(boundMs);
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  #take(message: IncomingMessage, response: ServerResponse, isExpecting: boolean): void {
    this.#inFlight.begun();
    response.once("close", () => this.#inFlight.ended());
    try {
      const request = new NodeRequest(message, response, isExpecting);
      const answer = this.#routeOf(request).answer(request);
      if (answer instanceof Promise) void this.#later(answer, message, response);
      else send(message, response, answer);
    } catch (thrown) {
      send(message, response, answerOf(thrown));
    }
  }

  async #later(
    answer: Promise<HttpAnswer>,
    message: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    try {
      send(message, response, await answer);
    } catch (thrown) {
      send(message, response, answerOf(thrown));
    }
  }

  #routeOf({ method, path }: HttpRequest): Route {
    const route = this.#routes.find((each) => each.matches(path));
    if (route === undefined) {
      throw new HttpRefusal(404, "unimplemented", "nothing is served at this path");
    }
    const { methods } = route;
    if (methods === "any") return route;
    const allowed: readonly string[] = methods.includes("GET")
      ? ["GET", "HEAD", ...methods.filter((each) => each !== "GET")]
      : methods;
    if (!allowed.includes(method)) {
      const allow = allowed.join(", ");
      throw new HttpRefusal(405, "unimplemented", `only ${allow} here`, { allow });
    }
    return route;
  }
}

function answerOf(thrown: unknown): HttpAnswer {
  if (thrown instanceof HttpRefusal) return refusalAnswer(thrown);
  return refusalAnswer(new HttpRefusal(500, "internal", "an unexpected error"));
}

function send(message: IncomingMessage, response: ServerResponse, answer: HttpAnswer): void {
  const { status, headers, body } = answer;
  if (!message.complete) {
    // What is left of a body is read and dropped where that is little; else its caller is told that nobody reads on.
    if (!(Number(message.headers["content-length"]) <= MAX_DROPPED_BYTES)) {
      response.shouldKeepAlive = false;
    }
    message.resume();
  }
  response.writeHead(status, {
    ...headers,
    // With 304 it would be the length of what is not sent.
    ...(status === 304 ? {} : { "content-length": lengthOf(body) }),
    "cache-control": headers["cache-control"] ?? "no-store",
    "x-content-type-options": "nosniff",
  });
  response.end(message.method === "HEAD" ? undefined : body);
}

function lengthOf(body: HttpAnswer["body"]): number {
  return typeof body === "string" ? Buffer.byteLength(body) : body.length;
}
