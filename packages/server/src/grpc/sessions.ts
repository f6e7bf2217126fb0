import type {
  Http2Server,
  IncomingHttpHeaders,
  ServerHttp2Session,
  ServerHttp2Stream,
} from "node:http2";
import type { Server } from "@grpc/grpc-js";
import { boundTimeout, isOneHost } from "./heads.ts";

/** What is done with sessions and streams before grpc-js has them. */
export interface Guard {
  session(session: ServerHttp2Session): unknown;
  /** grpc-js hears of the stream when `begin` is called, at once or later. */
  stream(stream: ServerHttp2Stream, begin: () => void): void;
}

type TakeStream = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  ...more: readonly unknown[]
) => void;

const PROTOCOL_ERROR = 1;

/**
 * Puts a guard before a server of grpc-js. To be called before it listens, or before it makes a connection injector.
 * Answers false, and changes nothing, when grpc-js makes its sessions in another way.
 */
export function guardSessions(server: Server, guard: Guard): boolean {
  const make: unknown = Reflect.get(server, "createHttp2Server");
  if (typeof make !== "function") return false;
  const guarded = (...args: readonly unknown[]): Http2Server => {
    const http2Server = Reflect.apply(make, server, args) as Http2Server;
    http2Server.prependListener("session", (session) => guard.session(session));
    const takers = http2Server.listeners("stream") as TakeStream[];
    http2Server.removeAllListeners("stream");
    for (const take of takers) {
      http2Server.on("stream", (stream, headers, flags, raw: readonly string[]) => {
        if (!isOneHost(headers)) {
          stream.on("error", () => undefined);
          stream.close(PROTOCOL_ERROR);
          return;
        }
        boundTimeout(headers);
        if (hasTwoTokens(raw)) headers.authorization = "";
        guard.stream(stream, () => {
          take.call(http2Server, stream, headers, flags, raw);
          dropUnread(stream);
        });
      });
    }
    return http2Server;
  };
  return Reflect.set(server, "createHttp2Server", guarded);
}

/** Of two fields `authorization` Node keeps the first, and nobody knows which one is meant. `raw`: names, each before its value. */
function hasTwoTokens(raw: readonly string[]): boolean {
  let count = 0;
  for (let at = 0; at < raw.length; at += 2) if (raw[at] === "authorization") count++;
  return count > 1;
}

/**
 * grpc-js answers unknown methods and content types at once, and never reads what such a call sends. A message of more than
 * one frame then stays in the memory of its connection, and once that is full, every further call on it is refused.
 */
function dropUnread(stream: ServerHttp2Stream): void {
  if (stream.headersSent && stream.readableFlowing === null) stream.resume();
}
