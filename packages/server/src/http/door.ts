import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock, Timers } from "@idmint/core";
import { InFlight } from "../in-flight.ts";
import {
  type Certificates,
  type FollowedCertificates,
  followCertificates,
  type TlsFiles,
} from "../tls/files.ts";
import { losersOf } from "../doors/greed.ts";
import { HttpRefusal, refusalAnswer, sayLast } from "./answers.ts";
import { Connections, type ConnectionsOptions } from "./connections.ts";
import { assertSameOrigin, type Hosts } from "./hosts.ts";
import { HELD_OF_ALL, type HeldOfAll, NOT_ASKED } from "./requests/held.ts";
import { assertHeaders, HttpConnection, type NodeRequest } from "./requests/request.ts";
import type { HttpAnswer, HttpRequest, Route } from "./route.ts";
import { createSpeaker, type Speaker } from "./speaker.ts";

/** Requests of one connection whose answers are not sent. Hardly anybody sends one before the last is answered. */
const MAX_UNANSWERED = 32;
/** Of a body that nobody wants. */
const MAX_DROPPED_BYTES = 1_024 * 1_024;
/** Share of what may be held that is left after room was made, so that it need not be made again at once. */
const ROOM_SHARE = 0.875;
const NO_ROOM = new HttpRefusal(
  503,
  "unavailable",
  "requests that are not whole take all the memory that there is for them, and this connection has the most of it; send each request at once",
);

export interface HttpDoorOptions extends Omit<ConnectionsOptions, "areUnread"> {
  readonly hosts: Hosts;
  /** Undefined: in plain text. */
  readonly tls?: TlsFiles | undefined;
  readonly maxConnectionAgeMs: number;
  /** Whether the common name of a client certificate is one of its names. */
  readonly takesCommonNames: boolean;
}

export interface HttpDoorPorts {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly onBadReload: (cause: unknown) => void;
}

/** A request, and all that belongs to it. */
interface Taken {
  readonly request: NodeRequest;
  readonly message: IncomingMessage;
  readonly response: ServerResponse;
  readonly connection: HttpConnection;
  readonly isReserved: boolean;
}

/** Listens for HTTP, bounds what connections may take, and hands requests to its routes. */
export class HttpDoor {
  readonly #ports: HttpDoorPorts;
  readonly #options: HttpDoorOptions;
  readonly #routes: readonly Route[];
  readonly #certificates: FollowedCertificates | undefined;
  readonly #speakers: { readonly usual: Speaker; readonly reserved: Speaker };
  readonly #connections: Connections;
  readonly #known = new Map<Socket, HttpConnection>();
  readonly #held: HeldOfAll = { bytes: 0, makeRoom: () => this.#makeRoomSoon() };
  #isMakingRoom = false;
  readonly #inFlight: InFlight;
  #isLeaving = false;

  private constructor(
    routes: readonly Route[],
    options: HttpDoorOptions,
    ports: HttpDoorPorts,
    certificates: FollowedCertificates | undefined,
  ) {
    this.#routes = routes;
    this.#options = options;
    this.#ports = ports;
    this.#certificates = certificates;
    this.#inFlight = new InFlight(ports.timers);
    this.#speakers = { usual: this.#speaker(false), reserved: this.#speaker(true) };
    const areUnread = options.tls !== undefined;
    this.#connections = new Connections(this.#speakers, { ...options, areUnread });
  }

  /** Makes the door; it is closed until `listen`. */
  static async create(
    routes: readonly Route[],
    options: HttpDoorOptions,
    ports: HttpDoorPorts,
  ): Promise<HttpDoor> {
    const { tls } = options;
    const renew = (next: Certificates): void => {
      for (const speaker of Object.values(door.#speakers)) speaker.renew(next);
    };
    const certificates =
      tls === undefined ? undefined : await followCertificates(tls, renew, ports.onBadReload);
    const door = new HttpDoor(routes, options, ports, certificates);
    return door;
  }

  /** Fulfils with the port; rejects when the address cannot be had. */
  listen(): Promise<number> {
    return this.#connections.listen();
  }

  /** Connections open now. */
  get connections(): number {
    return this.#connections.open;
  }

  /** Takes a connection that somebody else accepted and has not read from, for probes only. */
  reserve(socket: Socket): void {
    this.#connections.reserve(socket);
    socket.resume();
  }

  /** Each connection gets one more answer. */
  leave(): void {
    this.#isLeaving = true;
  }

  /** Connections stay again. */
  stay(): void {
    this.#isLeaving = false;
  }

  /** Fulfils when no request is in flight, or after `boundMs`. */
  idle(boundMs: number): Promise<void> {
    return this.#inFlight.idle(boundMs);
  }

  /** Takes no more connections, lets answers go out for at most `graceMs`, and closes every connection. */
  async close(graceMs: number): Promise<void> {
    this.leave();
    this.#connections.stop();
    this.#certificates?.close();
    await this.#inFlight.idle(graceMs);
    this.#connections.destroy();
  }

  #speaker(isReserved: boolean): Speaker {
    const asksClients = this.#options.tls?.clientCaFile !== undefined;
    const first = this.#certificates?.current;
    return createSpeaker({
      isReserved,
      onRefused: (peer, why) => this.#options.onRefused(peer, why),
      tls: first === undefined ? undefined : { first, asksClients },
      begin: (socket) => this.#begin(socket),
      take: (message, response, isExpecting) => {
        const connection = this.#known.get(message.socket);
        if (connection === undefined) {
          message.destroy();
          return;
        }
        const request = connection.request(message, response, isExpecting);
        this.#take({ request, message, response, connection, isReserved });
      },
      isWorking: (socket) => (this.#known.get(socket)?.working ?? 0) > 0,
      fail: (socket, why) => {
        const connection = this.#known.get(socket);
        if (connection === undefined) sayLast(socket, why);
        else connection.fail(why);
      },
    });
  }

  #take(taken: Taken): void {
    const { request, message, response, connection, isReserved } = taken;
    this.#inFlight.begun();
    response.once("close", () => {
      connection.answered(request);
      this.#inFlight.ended();
    });
    const isOld = this.#ports.clock.now() >= connection.endsAt;
    if (isReserved || this.#isLeaving || isOld) response.shouldKeepAlive = false;
    try {
      if (connection.unanswered > MAX_UNANSWERED) throw tooManyUnanswered(response);
      assertHeaders(message);
      const route = this.#routeOf(request, connection, isReserved);
      const answer = route.answer(request);
      // Node would keep it, and of a body in small chunks 300 bytes for each.
      if (route.takesBody !== true) message.resume();
      if (answer instanceof Promise) void this.#later(taken, answer);
      else send(taken, answer);
    } catch (thrown) {
      send(taken, answerOf(thrown));
    }
  }

  async #later(taken: Taken, answer: Promise<HttpAnswer>): Promise<void> {
    try {
      send(taken, await answer);
    } catch (thrown) {
      send(taken, answerOf(thrown));
    }
  }

  /** The route of a request that may be answered; throws for all others. */
  #routeOf(request: HttpRequest, connection: HttpConnection, isReserved: boolean): Route {
    const { method, path, headers } = request;
    const route = this.#routes.find((each) => each.matches(path));
    if (route?.audience !== "anybody") {
      this.#options.hosts.assertHost(headers);
      assertSameOrigin(headers, route?.audience === "people");
    }
    if (isReserved && route?.isProbe !== true) {
      const text =
        "as many connections are open as may be (limits.connections), or no process takes calls now; only probes are answered here";
      throw new HttpRefusal(503, "unavailable", text);
    }
    if (route === undefined) {
      throw new HttpRefusal(404, "unimplemented", "nothing is served at this path");
    }
    const asksClients = this.#options.tls?.clientCaFile !== undefined;
    if (asksClients && route.isProbe !== true && !connection.isAuthorized) {
      const text = "this server wants a client certificate that one of its authorities signed";
      throw new HttpRefusal(401, "unauthenticated", text);
    }
    assertMethod(route, method);
    return route;
  }

  #begin(socket: Socket): void {
    const { clock } = this.#ports;
    const { maxConnectionAgeMs, takesCommonNames } = this.#options;
    const endsAt = clock.now() + maxConnectionAgeMs;
    const held = this.#held;
    const connection = new HttpConnection(socket, { endsAt, takesCommonNames, held });
    this.#known.set(socket, connection);
    socket.once("close", () => this.#known.delete(socket));
    if (this.#known.size <= NOT_ASKED) return;
    socket.prependListener("data", (chunk: Buffer) => connection.came(chunk.length, clock.now()));
  }

  /** INVARIANT: what all connections keep is bounded. Above it those are refused that keep the most, of the address that does. */
  #makeRoomSoon(): void {
    if (this.#isMakingRoom) return;
    this.#isMakingRoom = true;
    setImmediate(() => {
      this.#isMakingRoom = false;
      const now = this.#ports.clock.now();
      const kept = (its: HttpConnection): number => its.keptAt(now);
      for (const connection of losersOf(this.#known.values(), HELD_OF_ALL * ROOM_SHARE, kept)) {
        this.#options.onRefused(
          connection.peer,
          "memory is short, and it keeps the most of requests that are not whole",
        );
        connection.fail(NO_ROOM);
      }
    });
  }
}

function assertMethod({ methods }: Route, method: string): void {
  if (methods === "any") return;
  const allowed: readonly string[] = methods.includes("GET") ? [...methods, "HEAD"] : methods;
  if (allowed.includes(method)) return;
  const allow = allowed.join(", ");
  throw new HttpRefusal(405, "unimplemented", `only ${allow} here`, { allow });
}

function tooManyUnanswered(response: ServerResponse): HttpRefusal {
  response.shouldKeepAlive = false;
  const text = `${MAX_UNANSWERED} requests of this connection wait for their answers already`;
  return new HttpRefusal(429, "resource_exhausted", text);
}

function answerOf(thrown: unknown): HttpAnswer {
  if (thrown instanceof HttpRefusal) return refusalAnswer(thrown);
  return refusalAnswer(new HttpRefusal(500, "internal", "an unexpected error"));
}

function send({ message, response, connection }: Taken, answer: HttpAnswer): void {
  connection.working--;
  const { status, headers, body } = answer;
  if (!message.complete) {
    // What is left of a body is read and dropped where that is little; else its caller is told that nobody reads on.
    const { "content-length": length = 0, "transfer-encoding": coding } = message.headers;
    if (coding !== undefined || Number(length) > MAX_DROPPED_BYTES)
      response.shouldKeepAlive = false;
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
