import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { Alarm } from "../../src/alarms/alarm.ts";

interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly alarm: Alarm;
}

/** A real receiver of alarms, that can be away, refuse, and never answer. */
export class Receiver {
  readonly received: Received[] = [];
  /** What it answers with. */
  answer: (response: ServerResponse, path: string) => void = (response) => response.end();
  #server: Server | undefined;
  #port = 0;

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    await receiver.open();
    onTestFinished(() => receiver.close());
    return receiver;
  }

  /** At the port that it had before. */
  async open(): Promise<void> {
    const server = createServer((request, response) => {
      void (async () => {
        const { url: path = "", headers } = request;
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk as Buffer);
        const alarm = JSON.parse(Buffer.concat(chunks).toString()) as Alarm;
        this.received.push({ path, headers, alarm });
        this.answer(response, path);
      })();
    });
    this.#server = server;
    server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#port = (server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.#port}${path}`;
  }

  get keys(): string[] {
    return this.received.map(({ alarm }) => alarm.key);
  }
}
