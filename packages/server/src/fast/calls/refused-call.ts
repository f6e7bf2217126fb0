import type { Call, Stream } from "../http2/stream.ts";
import type { CallsOfConnection } from "./call.ts";

/**
 * A request that is none of gRPC. Its answer comes when it is complete, as HTTP's clients expect; what it brings is thrown
 * away.
 */
export class RefusedCall implements Call {
  readonly #stream: Stream;
  readonly #its: CallsOfConnection;
  readonly #status: number;

  constructor(status: number, stream: Stream, its: CallsOfConnection) {
    this.#status = status;
    this.#stream = stream;
    this.#its = its;
  }

  received(_bytes: Buffer, _from: number, _to: number, isLast: boolean): boolean {
    if (!isLast) return false;
    this.#stream.user = undefined;
    this.#its.answers.refuseHttp(this.#stream, this.#status);
    return true;
  }

  aborted(): void {
    this.#its.release(this.#stream);
  }

  drained(): void {
    // Nothing was sent yet.
  }

  leave(): void {
    // Nobody waits for it.
  }
}
