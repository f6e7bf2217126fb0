import type { Duplex } from "node:stream";
import type { HttpAnswer } from "./route.ts";

export const JSON_TYPE = "application/json; charset=utf-8";
/** What HTTP calls these. */
const PHRASES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  405: "Method Not Allowed",
  408: "Request Timeout",
  413: "Payload Too Large",
  431: "Request Header Fields Too Large",
  503: "Service Unavailable",
};

export function jsonAnswer(status: number, value: unknown): HttpAnswer {
  return {
    status,
    headers: { "content-type": JSON_TYPE },
    body: `${JSON.stringify(value)}\n`,
  };
}

/** Why a request is refused before any method is called. It becomes an answer in the form of Connect's errors. */
export class HttpRefusal extends Error {
  readonly status: number;
  /** One of Connect's words. */
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: string,
    message: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

export function refusalAnswer({ status, code, message, headers }: HttpRefusal): HttpAnswer {
  const answer = jsonAnswer(status, { code, message });
  return { ...answer, headers: { ...headers, ...answer.headers } };
}

/** The last word on a connection. */
export function sayLast(socket: Duplex, { status, code, message }: HttpRefusal): void {
  const body = `${JSON.stringify({ code, message })}\n`;
  const lines = [
    `HTTP/1.1 ${status} ${PHRASES[status]}`,
    `content-type: ${JSON_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
}
