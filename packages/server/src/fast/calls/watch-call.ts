import { IdmintError } from "@idmint/core";
import { Code } from "@idmint/proto/rpc";
import type { WatchHandler } from "../../api/method.ts";
import { type CallsOfConnection, refusalOf, type RowOf, tooOld } from "./call.ts";
import type { Timed } from "./deadlines.ts";
import { timeoutOf } from "./grpc.ts";
import { OneMessage } from "./one-message.ts";
import type { Call, Stream } from "../http2/stream.ts";

const OK = 0;

/** A call of one message that is answered by many, until somebody ends it. */
export class WatchCall implements Call, Timed {
  readonly #row: RowOf<WatchHandler>;
  readonly #stream: Stream;
  readonly #its: CallsOfConnection;
  readonly #one: OneMessage;
  readonly #startedAt = performance.now();
  #tick = 0;
  #stop: (() => void) | undefined;
  #isOver = false;

  constructor(row: RowOf<WatchHandler>, stream: Stream, its: CallsOfConnection) {
    this.#row = row;
    this.#stream = stream;
    this.#its = its;
    this.#one = new OneMessage(its, stream.head.encoding);
    const timeoutMs = timeoutOf(stream.head.timeout);
    if (timeoutMs === undefined) return;
    const { clock, deadlines } = its.ports;
    this.#tick = deadlines.add(this, clock.now() + timeoutMs);
  }

  received(bytes: Buffer, from: number, to: number, isLast: boolean): boolean {
    if (this.#isOver) return true;
    const had = this.#one.message;
    const wrong = this.#one.take(bytes, from, to, isLast);
    const { message } = this.#one;
    if (wrong !== undefined) this.#refuse(wrong);
    else if (isLast && message !== undefined) {
      // It may be open for days, and its handler keeps what it needs.
      this.#one.forget();
      this.#open(message);
    }
    return message !== had;
  }

  expired(): void {
    this.#tick = 0;
    this.#refuse(new IdmintError("DEADLINE_EXCEEDED", "the deadline of the call is over"));
    this.#its.flush();
  }

  leave(): void {
    this.#refuse(tooOld());
    this.#its.flush();
  }

  aborted(): void {
    this.#end(Code.CANCELLED);
    this.#its.release(this.#stream);
  }

  drained(): void {
    // The state changes too seldom to wait for anybody.
  }

  #open(bytes: Buffer): void {
    const { answers, flush, peer, ports } = this.#its;
    ports.counters.calls++;
    try {
      answers.begin(this.#stream);
      this.#stop = this.#row.handler.open(bytes, {
        peer: peer.address,
        send: (message) => {
          if (this.#isOver) return;
          answers.bytes(this.#stream, message);
          flush();
        },
        end: () => {
          if (this.#isOver) return;
          this.#end(OK);
          answers.end(this.#stream);
          flush();
        },
      });
    } catch (thrown) {
      this.#refuse(thrown);
    }
  }

  #refuse(thrown: unknown): void {
    const refusal = refusalOf(thrown, this.#row, this.#its);
    this.#end(refusal.code);
    this.#its.answers.fail(this.#stream, refusal);
  }

  #end(code: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stop?.();
    this.#one.forget();
    if (this.#tick !== 0) this.#its.ports.deadlines.remove(this, this.#tick);
    // Nobody is to be told that the stream ended.
    this.#stream.user = undefined;
    this.#row.times?.answered(code, this.#startedAt);
  }
}
