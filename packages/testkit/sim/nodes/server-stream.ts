import type { StreamHandler } from "../../../server/src/api/method.ts";
import { statusOf, type StatusPorts } from "../../../server/src/api/status/status.ts";
import { CallStream } from "../../../server/src/doors/call-stream.ts";
import type { CallContext } from "../../../server/src/service/call.ts";
import type { Access } from "../../../server/src/service/access/access.ts";
import type { IncomingStream, StreamEnd } from "../world/rpc.ts";

export interface ServerStreamPorts extends StatusPorts {
  readonly access: Pick<Access, "assertKnown">;
  /** A request waits for its answer, until the answer is called. */
  readonly begun: () => () => void;
  readonly onEnd: (stream: ServerStream) => void;
}

/** A stream at a server, as a door holds it: the real `CallStream` above what comes from the network. */
export class ServerStream implements StreamEnd {
  readonly #calls: CallStream;
  readonly #context: CallContext & { abort(): void };
  readonly #ports: ServerStreamPorts;
  /** What came while nothing was read; undefined: its caller sends nothing more. */
  readonly #unread: (Uint8Array | undefined)[] = [];
  #isPaused = false;

  constructor(
    handler: StreamHandler,
    stream: IncomingStream,
    context: CallContext & { abort(): void },
    ports: ServerStreamPorts,
  ) {
    this.#context = context;
    this.#ports = ports;
    const { counters, begun } = ports;
    const answer = handler.open(context);
    const isPaused = (): boolean => this.#isPaused;
    const peer: ConstructorParameters<typeof CallStream>[0] = {
      get isPaused() {
        return isPaused();
      },
      write: (message) => {
        stream.send(handler.response.encode(message));
        return true;
      },
      pause: () => {
        this.#isPaused = true;
      },
      resume: () => {
        this.#isPaused = false;
        this.#readOn();
      },
      end: () => stream.end(undefined),
    };
    this.#calls = new CallStream(peer, {
      answer: (bytes, from, to) => {
        const answered = answer(bytes, from, to);
        if (answered instanceof Promise) void answered.catch(() => undefined).then(begun());
        return answered;
      },
      onRequest: () => counters.calls++,
      refuse: (thrown) => stream.end(statusOf(thrown, handler.path, ports)),
      onEnd: () => ports.onEnd(this),
    });
  }

  send(bytes: Uint8Array): void {
    this.#unread.push(bytes);
    this.#readOn();
  }

  end(): void {
    this.#unread.push(undefined);
    this.#readOn();
  }

  cancel(): void {
    this.#context.abort();
    this.#calls.gone();
  }

  /** Reads no further, answers what waits, and ends. */
  stop(reason: unknown): void {
    this.#calls.stop(reason);
  }

  /** Ends if its caller is not known any more. */
  recheck(): void {
    try {
      this.#ports.access.assertKnown(this.#context.principal);
    } catch (thrown) {
      this.#calls.stop(thrown);
    }
  }

  #readOn(): void {
    while (!this.#isPaused && this.#unread.length > 0) {
      const bytes = this.#unread.shift();
      if (bytes === undefined) this.#calls.end();
      else this.#calls.take(bytes, 0, bytes.length);
    }
  }
}
