// Connections on which a test writes whatever it likes.
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { until } from "../support.ts";

export interface Raw {
  readonly socket: Socket;
  /** All that came so far. */
  readonly received: () => string;
  readonly isClosed: () => boolean;
  /** The answers that have come whole, in what came from there on. */
  readonly answersFrom: (from: number) => readonly RawAnswer[];
  /** Fulfils when that many answers have come whole, or the connection is closed. */
  readonly answers: (count: number) => Promise<readonly RawAnswer[]>;
}

interface RawAnswer {
  readonly status: number;
  readonly headers: string;
  readonly body: string;
}

/** A connection that ends with the test. `from`: the address that it comes from. */
export function rawTo(address: string, from?: string): Raw {
  const raw = rawConnection(address, from);
  onTestFinished(() => void raw.socket.destroy());
  return raw;
}

/** A connection that whoever makes it destroys; nothing of it is kept. */
export function rawConnection(address: string, from?: string): Raw {
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
    answers: async (count) => {
      await until(() => closed || answersIn(received).length >= count);
      return answersIn(received);
    },
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
