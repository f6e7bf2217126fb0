// Connections on which whoever makes them writes whatever they like.
import { connect, type Socket } from "node:net";

export interface RawConnection {
  readonly socket: Socket;
  /** All that came so far. */
  readonly received: () => string;
  readonly isClosed: () => boolean;
  /** The answers that have come whole, in what came from there on. */
  readonly answersFrom: (from: number) => readonly RawAnswer[];
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: string;
  readonly body: string;
}

/** A connection that whoever makes it destroys; nothing of it is kept. */
export function rawConnection(address: string, from?: string): RawConnection {
  const colon = address.lastIndexOf(":");
  const socket = connect({
    host: address.slice(0, colon),
    port: Number(address.slice(colon + 1)),
    ...(from === undefined ? {} : { localAddress: from }),
  });
  let received = "";
  let closed = false;
  socket.on("data", (bytes: Buffer) => (received += bytes.toString("latin1")));
  socket.on("error", () => undefined);
  socket.once("close", () => (closed = true));
  return {
    socket,
    received: () => received,
    isClosed: () => closed,
    answersFrom: (from) => answersIn(received.slice(from)),
  };
}

/** The answers in what came on a connection; every answer of the door says its length. */
function answersIn(text: string): readonly RawAnswer[] {
  const answers: RawAnswer[] = [];
  for (let at = 0; ;) {
    const end = text.indexOf("\r\n\r\n", at);
    if (end < 0) return answers;
    const headers = text.slice(at, end);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(headers)?.[1]);
    const length = Number(/^content-length: (\d+)$/im.exec(headers)?.[1] ?? 0);
    if (text.length < end + 4 + length) return answers;
    // "Continue" is no answer.
    if (status >= 200)
      answers.push({ status, headers, body: text.slice(end + 4, end + 4 + length) });
    at = end + 4 + length;
  }
}
