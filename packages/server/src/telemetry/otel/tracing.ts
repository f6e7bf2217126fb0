import {
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type TextMapGetter,
  type Tracer,
} from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { codeName } from "../../service/call-times.ts";
import type { CallTrace, Operation, Tracing } from "../../service/trace.ts";
import { isSampled, type Sampling } from "./sampling.ts";

type Metadata = Parameters<Tracing["begin"]>[1];

/** Codes that are a server's fault, as OpenTelemetry sees it. */
const FAULTS = new Set([
  "UNKNOWN",
  "DEADLINE_EXCEEDED",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
]);
const OK = 0;

const GETTER: TextMapGetter<Metadata> = {
  keys: () => [],
  get: (metadata, key) => metadata.get(key).filter((value) => typeof value === "string"),
};

/**
 * Traces calls.
 *
 * INVARIANT: whether a call is traced is decided before anything is made for it, so a call that is not sampled costs a
 * look at its metadata.
 */
export class CallTracing implements Tracing {
  readonly #tracer: Tracer;
  readonly #sampling: Sampling;
  readonly #random: () => number;
  readonly #propagator = new W3CTraceContextPropagator();

  constructor(tracer: Tracer, sampling: Sampling, random: () => number) {
    this.#tracer = tracer;
    this.#sampling = sampling;
    this.#random = random;
  }

  begin(path: string, metadata: Metadata): CallTrace | undefined {
    const [traceparent] = metadata.get("traceparent");
    if (!isSampled(this.#sampling, traceparent, this.#random)) return undefined;
    const parent = this.#propagator.extract(ROOT_CONTEXT, metadata, GETTER);
    const method = path.slice(1);
    const attributes = { "rpc.system.name": "grpc", "rpc.method": method };
    const span = this.#tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, parent);
    return new TracedCall(this.#tracer, span, trace.setSpan(parent, span));
  }
}

class TracedCall implements CallTrace {
  readonly #tracer: Tracer;
  readonly #span: Span;
  readonly #context: Context;
  isOver = false;

  constructor(tracer: Tracer, span: Span, context: Context) {
    this.#tracer = tracer;
    this.#span = span;
    this.#context = context;
  }

  get ids(): CallTrace["ids"] {
    const { traceId, spanId } = this.#span.spanContext();
    return { trace_id: traceId, span_id: spanId };
  }

  operation(asked: Operation): { end(error: string): void } {
    const options = { kind: SpanKind.CLIENT, attributes: asked };
    const span = this.#tracer.startSpan(String(asked["db.operation.name"]), options, this.#context);
    return {
      end: (error) => {
        if (error !== "") {
          span.setAttribute("error.type", error);
          span.setStatus({ code: SpanStatusCode.ERROR });
        }
        span.end();
      },
    };
  }

  end(code: number): void {
    if (this.isOver) return;
    this.isOver = true;
    const name = codeName(code);
    this.#span.setAttribute("rpc.response.status_code", name);
    if (code !== OK) this.#span.setAttribute("error.type", name);
    if (FAULTS.has(name)) this.#span.setStatus({ code: SpanStatusCode.ERROR });
    this.#span.end();
  }
}
