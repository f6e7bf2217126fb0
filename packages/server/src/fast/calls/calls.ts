import { Code } from "@idmint/proto/rpc";
import { type CallsOfConnection, refusalOf, type Row, tooMuchWaits } from "./call.ts";
import { isKnownEncoding } from "./encoding.ts";
import { isGrpc, timeoutOf } from "./grpc.ts";
import { RefusedCall } from "./refused-call.ts";
import { BidiCall } from "./stream-call.ts";
import type { Call, Stream } from "../http2/stream.ts";
import { UnaryCalls } from "./unary-call.ts";
import { WatchCall } from "./watch-call.ts";

const HTTP_POST = "POST";

/** Makes a call of each stream of one connection. */
export class Calls {
  readonly #rows: ReadonlyMap<string, Row>;
  readonly #its: CallsOfConnection;
  readonly #unary: UnaryCalls;

  constructor(rows: ReadonlyMap<string, Row>, its: CallsOfConnection) {
    this.#rows = rows;
    this.#its = its;
    this.#unary = new UnaryCalls(its);
  }

  /** As `Connection` calls it. */
  readonly open = (stream: Stream, isTooLarge: boolean): void => {
    const { head } = stream;
    const { answers } = this.#its;
    // What gRPC's document on HTTP/2 says to those who do not speak it.
    if (isTooLarge) return answers.refuseHttp(stream, 431);
    if (head.method !== HTTP_POST || !isGrpc(head.contentType)) {
      stream.user = new RefusedCall(head.method === HTTP_POST ? 415 : 405, stream, this.#its);
      return;
    }
    const row = this.#rows.get(head.path);
    if (row === undefined) {
      const text = `there is no method ${head.path.slice(0, 256)}`;
      return answers.refuse(stream, Code.UNIMPLEMENTED, text);
    }
    if (this.#its.held.isTooMuch) {
      return answers.fail(stream, refusalOf(tooMuchWaits(), row, this.#its));
    }
    if (!isKnownEncoding(head.encoding)) {
      const text = `messages in the encoding ${head.encoding.slice(0, 64)} are not read`;
      return answers.refuse(stream, Code.UNIMPLEMENTED, text, { encodings: true });
    }
    if (head.timeout !== "" && timeoutOf(head.timeout) === undefined) {
      return answers.refuse(
        stream,
        Code.INTERNAL,
        "grpc-timeout must be up to 8 digits and a unit",
      );
    }
    try {
      stream.user = this.#callOf(row, stream);
    } catch (thrown) {
      answers.fail(stream, refusalOf(thrown, row, this.#its));
    }
  };

  /** All that was read is taken. */
  read(): void {
    this.#unary.read();
  }

  #callOf(row: Row, stream: Stream): Call {
    if (row.kind === "unary") return this.#unary.begin(row, stream);
    return row.kind === "watch"
      ? new WatchCall(row, stream, this.#its)
      : new BidiCall(row, stream, this.#its);
  }
}
