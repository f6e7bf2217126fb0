import type { IncomingHttpHeaders } from "node:http";

/** A request, as routes see it. */
export interface HttpRequest {
  readonly method: string;
  /** As it was sent, without its query. Nothing in it is decoded. */
  readonly path: string;
  /** What follows the `?`, not decoded either; empty without one. */
  readonly query: string;
  /** Headers that came twice are joined with a comma, so they are never a valid token or type. */
  readonly headers: IncomingHttpHeaders;
  /** Address of the caller, with its port. */
  readonly peer: string;
  /** Names in the certificate of its connection; empty without one that was verified. */
  readonly certificateNames: () => readonly string[];
  /** Calls the listener once if the caller goes away before it has its answer. */
  readonly onGone: (listener: () => void) => void;
  /** Reads the body. Rejects with HttpRefusal when it is too large, and when the caller stops sending. */
  readonly body: () => Promise<Buffer>;
}

export interface HttpAnswer {
  readonly status: number;
  /** The door adds the length, and what holds for every answer. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/** Some paths of the door, and what answers them. The door asks its routes in turn. */
export interface Route {
  /** Whether it answers this path. */
  readonly matches: (path: string) => boolean;
  /** Others are refused. HEAD goes with GET. */
  readonly methods: readonly ("GET" | "POST")[] | "any";
  /**
   * Whose requests are taken, besides those of this origin and of callers that are no browsers. `people`: whoever comes by a
   * link of another page. `anybody`: under any host, since nothing that is told here is worth hiding.
   */
  readonly audience?: "anybody" | "people";
  /** It reads bodies, in the turn in which it is asked. What comes for others is dropped. */
  readonly takesBody?: true;
  /** Answered on connections above the limit too, and without a client certificate. */
  readonly isProbe?: true;
  /** May throw or reject with HttpRefusal; anything else becomes a fixed text. */
  readonly answer: (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>;
}
