import { type Clock, IdmintError, type Timers } from "@idmint/core";
import { Code, type Status } from "@idmint/proto/rpc";
import type { Api } from "../api/api.ts";
import type { UnaryHandler } from "../api/method.ts";
import { rpcStatusOf } from "../api/status/status.ts";
import type { CallTimes } from "../service/call-times.ts";
import type { Counters } from "../service/counters.ts";
import type { Emit } from "../service/events.ts";
import { type CallTrace, runFor, type Tracing } from "../service/trace.ts";
import type { ContextPorts, HttpCallContext } from "./call-context.ts";
import type { HttpRequest } from "./route.ts";

export interface CallsPorts extends ContextPorts {
  readonly api: Api;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly counters: Counters;
  /** Undefined: calls are not timed. */
  readonly callTimes?: CallTimes | undefined;
  /** Undefined: no call is traced. */
  readonly tracing?: Tracing | undefined;
  readonly emit: Emit;
}

/** What a row of the table said. */
export type Outcome =
  | { readonly answer: Uint8Array; readonly refusal?: undefined }
  | { readonly answer?: undefined; readonly refusal: Status; readonly error: IdmintError };

/** Calls the rows of the table for the routes, and counts, times and traces the calls as the door of gRPC does. */
export class HttpCalls {
  readonly ports: CallsPorts;

  constructor(ports: CallsPorts) {
    this.ports = ports;
  }

  /** Calls a row. `read` makes its request; what it throws refuses the call. Never rejects. */
  call(
    handler: UnaryHandler,
    request: HttpRequest,
    context: HttpCallContext,
    read: () => Uint8Array | Promise<Uint8Array>,
  ): Promise<Outcome> {
    const { headers } = request;
    const trace = this.ports.tracing?.begin(handler.path, {
      get: (key) => (headers[key] === undefined ? [] : [headers[key]]),
    });
    return trace === undefined
      ? this.#call(handler, context, read)
      : runFor(trace, () => this.#call(handler, context, read, trace));
  }

  async #call(
    handler: UnaryHandler,
    context: HttpCallContext,
    read: () => Uint8Array | Promise<Uint8Array>,
    trace?: CallTrace,
  ): Promise<Outcome> {
    const { counters, callTimes } = this.ports;
    const times = callTimes?.of(handler.path);
    const startedAt = times === undefined ? 0 : performance.now();
    counters.calls++;
    let outcome: Outcome;
    try {
      const bytes = read();
      const answered = handler.handle(bytes instanceof Promise ? await bytes : bytes, context);
      const isLate = answered instanceof Promise;
      outcome = { answer: isLate ? await this.#inTime(answered, context) : answered };
    } catch (thrown) {
      const error = IdmintError.from(thrown);
      outcome = { refusal: rpcStatusOf(error, handler.path, this.ports), error };
    }
    const code = outcome.refusal?.code ?? Code.OK;
    times?.answered(code, startedAt);
    trace?.end(code);
    return outcome;
  }

  /** Services answer shortly before the deadline by themselves; this is for whatever else takes longer. */
  async #inTime(answered: Promise<Uint8Array>, context: HttpCallContext): Promise<Uint8Array> {
    const { clock, timers } = this.ports;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const stop = timers.after(Math.max(0, context.deadline - clock.now()), () => {
      reject(new IdmintError("DEADLINE_EXCEEDED", "the call took longer than its caller allowed"));
      context.abort();
    });
    try {
      return await Promise.race([answered, late]);
    } finally {
      stop();
    }
  }
}
