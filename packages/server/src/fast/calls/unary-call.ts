import { IdmintError } from "@idmint/core";
import { Code } from "@idmint/proto/rpc";
import type { Message, UnaryHandler } from "../../api/method.ts";
import { type CallTrace, runFor, type Tracing } from "../../service/trace.ts";
import { FastCallContext } from "./call-context.ts";
import {
  type CallsOfConnection,
  carried,
  type LateCall,
  refusalOf,
  type RowOf,
  tooOld,
} from "./call.ts";
import { PREFIX_BYTES } from "./deframer.ts";
import { timeoutOf } from "./grpc.ts";
import { OneMessage } from "./one-message.ts";
import type { Call, Stream } from "../http2/stream.ts";

const OK = 0;
/** Calls of one connection that wait for their next use. */
const MAX_IDLE = 16;

/** The calls of one message, of one connection. */
export class UnaryCalls {
  readonly #its: CallsOfConnection;
  readonly #calls: UnaryCall[] = [];
  /** Those with a time of their own that began in what is being read, before `#end`. Kept, since a new list costs memory. */
  readonly #begun: UnaryCall[] = [];
  #end = 0;

  constructor(its: CallsOfConnection) {
    this.#its = its;
  }

  /** An object is used again when its call was answered at once: nobody else knows it then. */
  begin(row: RowOf<UnaryHandler>, stream: Stream): Call {
    const call = this.#calls.pop() ?? new UnaryCall(this.#its, this.#idle);
    call.begin(row, stream);
    if (stream.head.timeout !== "") this.#begun[this.#end++] = call;
    return call;
  }

  /** All that was read is taken. Nearly every call has ended with it; the time of the others runs. */
  read(): void {
    // One that was used again may be there twice.
    for (let at = 0; at < this.#end; at++) this.#begun[at]?.waitForRest();
    this.#end = 0;
    if (this.#begun.length > MAX_IDLE) this.#begun.length = MAX_IDLE;
  }

  readonly #idle = (call: UnaryCall): void => {
    if (this.#calls.length < MAX_IDLE) this.#calls.push(call);
  };
}

/**
 * A call of one message, which is answered by one.
 *
 * - *reading*: its message is not whole, or its end has not come. Its time runs all the same, from its head on.
 * - *late*: its message is whole, and its handler gets it behind what came with it, unless it is cancelled there.
 * - *working*: the handler has it; `#context` is set, unless the answer came at once.
 * - *over*: it was answered, or its caller is gone.
 */
class UnaryCall implements Call, LateCall {
  #row!: RowOf<UnaryHandler>;
  #stream!: Stream;
  readonly #its: CallsOfConnection;
  readonly #idle: (call: UnaryCall) => void;
  #one: OneMessage | undefined;
  /** The message of a call that is late. */
  #late: Buffer | undefined;
  #context: FastCallContext | undefined;
  /** Of a call whose answer did not come at once. */
  #trace: CallTrace | undefined;
  #startedAt = 0;
  /** When its head came, of a call whose request waited for more; 0: it did not. */
  #headAt = 0;
  #tick = 0;
  #isOver = false;

  constructor(its: CallsOfConnection, idle: (call: UnaryCall) => void) {
    this.#its = its;
    this.#idle = idle;
  }

  begin(row: RowOf<UnaryHandler>, stream: Stream): void {
    this.#row = row;
    this.#stream = stream;
    this.#startedAt = 0;
    this.#headAt = 0;
    this.#isOver = false;
  }

  /** If its request is not whole: waits for the rest, as long as its caller waits for the answer. */
  waitForRest(): void {
    if (this.#isOver || this.#context !== undefined || this.#tick !== 0) return;
    const { clock, deadlines } = this.#its.ports;
    this.#startedAt ||= performance.now();
    this.#headAt = clock.now();
    this.#tick = deadlines.add(this, this.#headAt + (timeoutOf(this.#stream.head.timeout) ?? 0));
  }

  received(bytes: Buffer, from: number, to: number, isLast: boolean): boolean {
    if (this.#isOver) return true;
    if (isLast && this.#one === undefined && isWhole(bytes, from, to)) {
      this.#start(bytes, from + PREFIX_BYTES, to);
      return true;
    }
    return this.#gather(bytes, from, to, isLast);
  }

  aborted(): void {
    if (this.#isOver) return;
    const context = this.#context;
    this.#end(Code.CANCELLED, this.#trace);
    // A handler that works keeps the slot of its stream until it has ended.
    if (context === undefined) this.#its.release(this.#stream);
    else context.abort();
  }

  drained(): void {
    // The one answer waits in the stream.
  }

  /** The time of the call is over. Services refuse shortly before; this is for whatever else takes longer. */
  expired(): void {
    if (this.#isOver) return;
    this.#tick = 0;
    this.#giveUp(new IdmintError("DEADLINE_EXCEEDED", "the deadline of the call is over"));
  }

  leave(): void {
    if (!this.#isOver) this.#giveUp(tooOld());
  }

  /** Its handler may work on; what it answers is of no use any more. */
  #giveUp(why: IdmintError): void {
    this.#refuse(why, this.#trace);
    this.#context?.abort();
    this.#its.flush();
  }

  /** A message that comes in parts, or compressed, or not alone. */
  #gather(bytes: Buffer, from: number, to: number, isLast: boolean): boolean {
    this.#one ??= new OneMessage(this.#its, this.#stream.head.encoding);
    this.#startedAt ||= performance.now();
    const had = this.#one.message;
    const wrong = this.#one.take(bytes, from, to, isLast);
    const { message } = this.#one;
    if (wrong !== undefined) this.#refuse(wrong);
    else if (isLast && message !== undefined) {
      // The handler has it now, and keeps what it needs of it.
      this.#one.forget();
      this.#start(message, 0, message.length);
    }
    return message !== had;
  }

  #start(bytes: Buffer, from: number, to: number): void {
    const { tracing } = this.#its.ports;
    if (this.#its.isWasteful() && this.#late === undefined) this.#wait(bytes, from, to);
    else if (tracing === undefined) this.#work(bytes, from, to, undefined);
    else this.#traced(bytes, from, to, tracing);
  }

  #wait(bytes: Buffer, from: number, to: number): void {
    this.#late = Buffer.from(bytes.subarray(from, to));
    this.#its.late.add(this);
  }

  goOn(): void {
    const bytes = this.#late;
    if (bytes === undefined) return;
    this.#its.late.delete(this);
    this.#start(bytes, 0, bytes.length);
  }

  // Apart, since whatever has a closure costs memory each time.
  #traced(bytes: Buffer, from: number, to: number, tracing: Tracing): void {
    const trace = tracing.begin(this.#row.handler.path, carried(this.#stream.head));
    if (trace === undefined) this.#work(bytes, from, to, undefined);
    else runFor(trace, () => this.#work(bytes, from, to, trace));
  }

  #work(bytes: Buffer, from: number, to: number, trace: CallTrace | undefined): void {
    const row = this.#row;
    const its = this.#its;
    if (row.times !== undefined) this.#startedAt = performance.now();
    its.ports.counters.calls++;
    const { head } = this.#stream;
    const beganAt = this.#headAt === 0 ? its.ports.clock.now() : this.#headAt;
    const context = new FastCallContext(its.peer, its.ports, head, beganAt);
    try {
      const answer = row.handler.answer(bytes, from, to, context);
      if (answer instanceof Promise) void this.#answerLater(answer, context, trace);
      else {
        this.#answer(answer, trace);
        this.#idle(this);
      }
    } catch (thrown) {
      this.#refuse(thrown, trace);
    }
  }

  async #answerLater(
    answer: Promise<Message>,
    context: FastCallContext,
    trace: CallTrace | undefined,
  ): Promise<void> {
    const { deadlines, inFlight } = this.#its.ports;
    this.#context = context;
    this.#trace = trace;
    if (this.#tick === 0) this.#tick = deadlines.add(this, context.deadline);
    inFlight.begun();
    try {
      const message = await answer;
      if (!this.#isOver) this.#answer(message, trace);
    } catch (thrown) {
      if (!this.#isOver) this.#refuse(thrown, trace);
    }
    inFlight.ended();
    this.#its.release(this.#stream);
    this.#its.flush();
  }

  #answer(message: Message, trace: CallTrace | undefined): void {
    const { response } = this.#row.handler;
    const size = response.sizeOf(message);
    // What cannot be written is refused, so that shows before the call ends.
    const bytes = size < 0 ? response.encode(message) : undefined;
    this.#end(OK, trace);
    this.#its.answers.begin(this.#stream);
    if (bytes !== undefined) this.#its.answers.bytes(this.#stream, bytes);
    else this.#its.answers.message(this.#stream, response, message, size);
    this.#its.answers.end(this.#stream);
  }

  #refuse(thrown: unknown, trace?: CallTrace): void {
    const refusal = refusalOf(thrown, this.#row, this.#its);
    this.#end(refusal.code, trace);
    this.#its.answers.fail(this.#stream, refusal);
  }

  #end(code: number, trace: CallTrace | undefined): void {
    this.#isOver = true;
    this.#forget();
    // Nobody is to be told that the stream ended.
    if (this.#context === undefined) this.#stream.user = undefined;
    if (this.#startedAt !== 0) this.#row.times?.answered(code, this.#startedAt);
    trace?.end(code);
  }

  #forget(): void {
    this.#one?.forget();
    this.#one = undefined;
    if (this.#late !== undefined) {
      this.#its.late.delete(this);
      this.#late = undefined;
    }
    if (this.#tick !== 0) this.#its.ports.deadlines.remove(this, this.#tick);
    this.#tick = 0;
  }
}

function isWhole(bytes: Buffer, from: number, to: number): boolean {
  return (
    to - from >= PREFIX_BYTES &&
    bytes[from] === 0 &&
    bytes.readUInt32BE(from + 1) === to - from - PREFIX_BYTES
  );
}
