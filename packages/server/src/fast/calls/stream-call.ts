import { IdmintError } from "@idmint/core";
import type { StreamHandler } from "../../api/method.ts";
import { CallStream } from "../../doors/call-stream.ts";
import { type CallTrace, runFor } from "../../service/trace.ts";
import { type CallsOfConnection, carried, refusalOf, type RowOf, tooOld } from "./call.ts";
import { FastStreamContext } from "./call-context.ts";
import type { Timed } from "./deadlines.ts";
import { FRAMING } from "./framing.ts";
import { Incoming, type Wrong } from "./incoming.ts";
import type { Call, Stream } from "../http2/stream.ts";

const OK = 0;

/**
 * A call of many requests with an answer each.
 *
 * INVARIANT: while its caller takes no answers, or too many requests wait, none is looked at; what comes is kept, which the
 * window of the stream and `Incoming` bound.
 */
export class BidiCall implements Call, Timed {
  readonly #row: RowOf<StreamHandler>;
  readonly #stream: Stream;
  readonly #its: CallsOfConnection;
  readonly #incoming: Incoming;
  readonly #context: FastStreamContext;
  readonly #calls: CallStream;
  readonly #trace: CallTrace | undefined;
  readonly #startedAt: number = performance.now();
  #code = OK;
  #tick = 0;
  /** Requests whose answers did not come at once. */
  #working = 0;
  /** Whether the caller sent all. */
  #isLast = false;
  #isOver = false;
  #isGone = false;

  constructor(row: RowOf<StreamHandler>, stream: Stream, its: CallsOfConnection) {
    this.#row = row;
    this.#stream = stream;
    this.#its = its;
    const { ports } = its;
    const { handler } = row;
    const { head } = stream;
    this.#incoming = new Incoming(its, head.encoding);
    this.#trace = ports.tracing?.begin(handler.path, carried(head));
    this.#context = new FastStreamContext(its.peer, ports, head);
    const answer = handler.open(this.#context);
    its.answers.begin(stream);
    this.#calls = new CallStream(this.#peer(), {
      answer: (bytes, begin, end) => {
        const trace = this.#trace;
        const answered =
          trace === undefined
            ? answer(bytes, begin, end)
            : runFor(trace, () => answer(bytes, begin, end));
        if (answered instanceof Promise) void this.#track(answered);
        return answered;
      },
      onRequest: () => ports.counters.calls++,
      refuse: (thrown) => this.#refuse(thrown),
      onEnd: () => this.#ended(),
    });
    if (head.timeout !== "") this.#tick = ports.deadlines.add(this, this.#context.endsAt);
    // What is answered to everybody asks nobody who they are.
    if (handler.rule.isOpen) return;
    ports.streams.add(this);
    this.recheck();
  }

  /** Ends the call if its caller is not known any more. */
  recheck(): void {
    try {
      this.#its.ports.access.assertKnown(this.#context.principal);
    } catch (thrown) {
      this.#calls.stop(thrown);
    }
  }

  /** Reads no further, answers what waits, and ends. */
  stop(reason: unknown): void {
    this.#calls.stop(reason);
  }

  /** The time of the call is over. Nothing waits longer, whoever is slow. */
  expired(): void {
    this.#tick = 0;
    if (this.#isGone) return;
    this.#refuse(new IdmintError("DEADLINE_EXCEEDED", "the deadline of the call is over"));
    // What the caller did not take by now, it does not want.
    if (!this.#isGone) this.#its.reset(this.#stream);
    this.#its.flush();
  }

  leave(): void {
    this.#calls.stop(tooOld());
  }

  received(bytes: Buffer, from: number, to: number, isLast: boolean): boolean {
    // Its end may wait for a caller that does not read; nothing more of it is of use.
    if (this.#isOver) return true;
    this.#isLast = isLast;
    if (this.#stream.isPaused) {
      this.#afterReading(this.#incoming.keep(bytes, from, to));
      return true;
    }
    let count = 0;
    const wrong = this.#incoming.take(bytes, from, to, (part, begin, end) => {
      count++;
      return this.#request(part, begin, end);
    });
    this.#afterReading(wrong);
    return count > 0;
  }

  aborted(): void {
    this.#isGone = true;
    this.#context.abort();
    this.#calls.gone();
    // Handlers that work keep the slot of the stream until they have ended.
    if (this.#working === 0) this.#its.release(this.#stream);
  }

  drained(): void {
    this.#calls.drained();
    this.#its.flush();
  }

  /** Answers whether the next request is wanted at once. */
  #request(bytes: Buffer, from: number, to: number): boolean {
    this.#calls.take(bytes, from, to);
    return !this.#stream.isPaused;
  }

  #readOn(): void {
    const wrong = this.#incoming.takeKept((bytes, from, to) => this.#request(bytes, from, to));
    this.#afterReading(wrong);
  }

  #afterReading(wrong: Wrong | undefined): void {
    if (wrong !== undefined) this.#calls.stop(wrong);
    else if (!this.#isLast || this.#stream.isPaused) return;
    else if (this.#incoming.isEmpty) this.#calls.end();
    else this.#calls.stop(FRAMING.half);
  }

  #refuse(thrown: unknown): void {
    const refusal = refusalOf(thrown, this.#row, this.#its);
    this.#code = refusal.code;
    if (!this.#isGone) this.#its.answers.fail(this.#stream, refusal);
  }

  #ended(): void {
    const { deadlines, streams } = this.#its.ports;
    this.#isOver = true;
    streams.delete(this);
    if (this.#tick !== 0) deadlines.remove(this, this.#tick);
    this.#incoming.forget();
    this.#row.times?.answered(this.#code, this.#startedAt);
    this.#trace?.end(this.#code);
    this.#its.flush();
  }

  #peer(): ConstructorParameters<typeof CallStream>[0] {
    const stream = this.#stream;
    const its = this.#its;
    const { response } = this.#row.handler;
    return {
      get isPaused() {
        return stream.isPaused;
      },
      write: (message) => {
        if (this.#isGone) return true;
        const size = response.sizeOf(message);
        const goesOn =
          size < 0
            ? its.answers.bytes(stream, response.encode(message))
            : its.answers.message(stream, response, message, size);
        its.flush();
        return goesOn;
      },
      pause: () => its.pause(stream),
      resume: () => {
        its.resume(stream);
        this.#readOn();
      },
      end: () => {
        if (!this.#isGone) its.answers.end(stream);
      },
    };
  }

  async #track(answer: Promise<unknown>): Promise<void> {
    const { inFlight } = this.#its.ports;
    inFlight.begun();
    this.#working++;
    // How it ends is told to its caller.
    await answer.catch(() => undefined);
    inFlight.ended();
    this.#working--;
    if (this.#isGone && this.#working === 0) this.#its.release(this.#stream);
  }
}
