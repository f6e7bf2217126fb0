import { subscribe, tracingChannel, unsubscribe } from "node:diagnostics_channel";
import {
  type Attributes,
  context,
  type Meter,
  type MeterProvider,
  metrics,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
  type TracerProvider,
} from "@opentelemetry/api";
import { IdmintError } from "@idmint/core";
import type { EventMessage, LoadMessage, StockMessage, TagStock } from "./channels.ts";

export interface InstrumentOptions {
  /** Default: the one that is registered with @opentelemetry/api. */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Default: the one that is registered with @opentelemetry/api. */
  readonly meterProvider?: MeterProvider | undefined;
  /** How many tags have metrics of their own; all others are counted together as `_other`. Default: 100. */
  readonly maxTags?: number | undefined;
}

const DEFAULT_MAX_TAGS = 100;
/** No tag can have this name. */
const OTHER_TAGS = "_other";
const GRPC = { "rpc.system.name": "grpc" };

/**
 * Traces and measures all clients of the process with OpenTelemetry: a span for each request that loads segments, ids or
 * leases, and the metrics of docs/observability.md. Ids that are issued from memory cost nothing. Returns a function that ends
 * both. While it is on, a second call changes nothing, whatever its options, and answers the same function.
 */
export function instrument(options: InstrumentOptions = {}): () => void {
  endOfAll ??= begin(options);
  return endOfAll;
}

let endOfAll: (() => void) | undefined;

function begin(options: InstrumentOptions): () => void {
  const { tracerProvider = trace, meterProvider = metrics } = options;
  const tags = new TagNames(options.maxTags ?? DEFAULT_MAX_TAGS);
  const meter = meterProvider.getMeter("@idmint/client");
  const ends = [
    traceLoads(tracerProvider.getTracer("@idmint/client"), meter),
    countEvents(meter, tags),
    showStock(meter, tags),
  ];
  const endThis = (): void => {
    for (const end of ends.splice(0)) end();
    if (endOfAll === endThis) endOfAll = undefined;
  };
  return endThis;
}

/** The tags that have series of their own: the first ones. */
class TagNames {
  readonly #max: number;
  readonly #names = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  of(tag: string): string {
    if (this.#names.has(tag)) return tag;
    if (this.#names.size >= this.#max) return OTHER_TAGS;
    this.#names.add(tag);
    return tag;
  }
}

interface Begun {
  readonly span: Span;
  readonly startedAt: number;
}

function traceLoads(tracer: Tracer, meter: Meter): () => void {
  const durations = meter.createHistogram("rpc.client.call.duration", {
    unit: "s",
    description: "How long requests took that load segments, ids or leases.",
  });
  const begun = new WeakMap<object, Begun>();
  const loads = tracingChannel<unknown, LoadMessage>("idmint:load");
  const subscribers = {
    start: (message: LoadMessage): void => {
      const { method, tag, headers } = message;
      const attributes = { ...attributesOf(message), "idmint.tag": tag };
      const span = tracer.startSpan(method, { kind: SpanKind.CLIENT, attributes });
      propagation.inject(trace.setSpan(context.active(), span), headers);
      begun.set(message, { span, startedAt: performance.now() });
    },
    asyncEnd: (message: LoadMessage): void => {
      const its = begun.get(message);
      if (its === undefined) return;
      const attributes = { ...attributesOf(message), ...outcomeOf(message.error) };
      durations.record((performance.now() - its.startedAt) / 1_000, attributes);
      its.span.setAttributes(outcomeOf(message.error));
      if (message.error !== undefined) its.span.setStatus({ code: SpanStatusCode.ERROR });
      its.span.end();
    },
    end: ignore,
    asyncStart: ignore,
    error: ignore,
  };
  loads.subscribe(subscribers);
  return () => loads.unsubscribe(subscribers);
}

function countEvents(meter: Meter, tags: TagNames): () => void {
  const loaded = meter.createCounter("idmint.client.ids.loaded", {
    unit: "{id}",
    description: "Ids of segments that were loaded.",
  });
  const wasted = meter.createCounter("idmint.client.ids.wasted", {
    unit: "{id}",
    description: "Ids of segments that became a gap.",
  });
  const failed = meter.createCounter("idmint.client.load.failures", {
    unit: "{load}",
    description: "Loads of segments that failed, and will be tried again.",
  });
  const hear = (message: unknown): void => {
    const { event } = message as EventMessage;
    if (event.type === "loaded") loaded.add(event.count, { tag: tags.of(event.tag) });
    else if (event.type === "wasted") wasted.add(event.count, { tag: tags.of(event.tag) });
    else if (event.type === "load-failed") failed.add(1, { "error.type": event.error.reason });
  };
  subscribe("idmint:event", hear);
  return () => unsubscribe("idmint:event", hear);
}

function showStock(meter: Meter, tags: TagNames): () => void {
  const clients = new Map<number, readonly TagStock[]>();
  const hear = (message: unknown): void => {
    const { client, tags: its } = message as StockMessage;
    if (its.length === 0) clients.delete(client);
    else clients.set(client, its);
  };
  const ready = meter.createObservableGauge("idmint.client.ids.ready", {
    unit: "{id}",
    description: "Ids in memory that were not issued.",
  });
  const share = meter.createObservableGauge("idmint.client.segment.remaining", {
    unit: "1",
    description: "Share of the segments in memory that is left.",
  });
  const waiters = meter.createObservableGauge("idmint.client.waiters", {
    unit: "{call}",
    description: "Calls that wait for ids.",
  });
  const gauges = [ready, share, waiters];
  const shown = new Set<string>();
  const observe: Parameters<Meter["addBatchObservableCallback"]>[0] = (result) => {
    const all = sums([...clients.values()].flat(), tags);
    // A gauge that is not observed any more would stay as it was.
    for (const tag of shown) if (!all.has(tag)) all.set(tag, NOTHING);
    for (const [tag, stock] of all) {
      shown.add(tag);
      result.observe(ready, stock.ready, { tag });
      if (stock.held > 0) result.observe(share, stock.ready / stock.held, { tag });
      result.observe(waiters, stock.waiting, { tag });
    }
  };
  meter.addBatchObservableCallback(observe, gauges);
  subscribe("idmint:stock", hear);
  return () => {
    unsubscribe("idmint:stock", hear);
    meter.removeBatchObservableCallback(observe, gauges);
  };
}

type Sum = Omit<TagStock, "tag">;
const NOTHING: Sum = { ready: 0, held: 0, waiting: 0 };

function sums(stocks: readonly TagStock[], tags: TagNames): Map<string, Sum> {
  const all = new Map<string, Sum>();
  for (const { tag, ready, held, waiting } of stocks) {
    const name = tags.of(tag);
    const sum = all.get(name) ?? NOTHING;
    all.set(name, {
      ready: sum.ready + ready,
      held: sum.held + held,
      waiting: sum.waiting + waiting,
    });
  }
  return all;
}

function attributesOf({ method, endpoint }: LoadMessage): Attributes {
  const colon = endpoint.lastIndexOf(":");
  return {
    ...GRPC,
    "rpc.method": method,
    "server.address": endpoint.slice(0, colon),
    "server.port": Number(endpoint.slice(colon + 1)),
  };
}

function outcomeOf(error: unknown): Attributes {
  if (error === undefined) return { "rpc.response.status_code": "OK" };
  const { code, reason } = IdmintError.from(error);
  return { "rpc.response.status_code": code, "error.type": reason };
}

function ignore(): void {
  // Only the beginning and the end of a request count.
}
