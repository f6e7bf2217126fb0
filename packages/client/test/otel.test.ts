// What OpenTelemetry gets of clients, and what is told on diagnostics channels.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { context, metrics, propagation, trace } from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  InMemorySpanExporter,
  SimpleSpanProcessor,
  StackContextManager,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { IdmintError } from "@idmint/core";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import type { EventMessage, StockMessage } from "../src/channels.ts";
import { createIdClient } from "../src/index.ts";
import { instrument, type InstrumentOptions } from "../src/otel.ts";
import { type FakeServer, startFleet } from "./fake-fleet.ts";
import { refusal } from "./support.ts";

beforeAll(() => {
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  context.setGlobalContextManager(new StackContextManager().enable());
});

function observed(options: InstrumentOptions = {}) {
  const exporter = new InMemorySpanExporter();
  const spanProcessors = [new SimpleSpanProcessor({ exporter })];
  const tracerProvider = new TracerProvider({ spanProcessors });
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({
    exporter: metricExporter,
    exportIntervalMillis: 60_000,
  });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const end = instrument({ tracerProvider, meterProvider, ...options });
  onTestFinished(async () => {
    end();
    await meterProvider.shutdown();
  });
  /** The values of a metric that was just collected, by tag. */
  const valuesOf = async (name: string): Promise<Map<unknown, unknown>> => {
    const { resourceMetrics } = await reader.collect();
    const all = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
    const points = all.find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? [];
    return new Map(points.map(({ attributes, value }) => [attributes["tag"], value]));
  };
  return { exporter, tracer: tracerProvider.getTracer("caller"), end, valuesOf };
}

test("a second instrument() changes nothing, and ends what the first one began", async () => {
  const server = await oneServer("orders");
  const { exporter, end } = observed();
  const second = instrument({ maxTags: 1 });
  expect(second).toBe(end);
  await using client = createIdClient({ address: server.address });
  await client.tag("orders").next();
  expect(exporter.getFinishedSpans()).toHaveLength(1);
  second();
  exporter.reset();
  server.store.add("others");
  await client.tag("others").next();
  expect(exporter.getFinishedSpans()).toEqual([]);
  const third = instrument();
  expect(third).not.toBe(end);
  third();
});

async function oneServer(...tags: readonly string[]): Promise<FakeServer> {
  const { store, servers } = await startFleet(1, onTestFinished);
  for (const tag of tags) store.add(tag);
  return servers[0]!;
}

test("a load is a span below its caller's, and tells the server so; ids from memory make none", async () => {
  const server = await oneServer("orders");
  const { exporter, tracer } = observed();
  await using client = createIdClient({ address: server.address, min: 100 });
  const orders = client.tag("orders");
  const caller = tracer.startSpan("checkout");
  const first = context.with(trace.setSpan(context.active(), caller), () => orders.next());
  expect(await first).toBe(1n);
  caller.end();
  for (let calls = 0; calls < 5; calls++) await orders.next();
  const loads = exporter.getFinishedSpans().filter(({ name }) => name !== "checkout");
  const [load, ...others] = loads;
  expect(others).toEqual([]);
  expect(load?.name).toBe("idmint.v1.IdService/AllocateSegment");
  expect(load?.parentSpanContext?.spanId).toBe(caller.spanContext().spanId);
  expect(load?.attributes).toMatchObject({
    "rpc.system.name": "grpc",
    "rpc.method": "idmint.v1.IdService/AllocateSegment",
    "rpc.response.status_code": "OK",
    "server.address": "127.0.0.1",
    "server.port": Number(server.address.split(":")[1]),
    "idmint.tag": "orders",
  });
  const { traceId, spanId } = load!.spanContext();
  expect(server.traceparents).toEqual([`00-${traceId}-${spanId}-01`]);
});

test("a load that is refused says why, and what ends the instrument ends the spans", async () => {
  const server = await oneServer("orders");
  const { exporter, end } = observed();
  await using client = createIdClient({ address: server.address });
  expect(await refusal(client.tag("unknown").next())).toBeInstanceOf(IdmintError);
  const [refused] = exporter.getFinishedSpans();
  expect(refused?.attributes).toMatchObject({
    "rpc.response.status_code": "NOT_FOUND",
    "error.type": "TAG_NOT_FOUND",
  });
  expect(refused?.status.code).toBe(2);
  exporter.reset();
  end();
  await client.tag("orders").next();
  expect(exporter.getFinishedSpans()).toEqual([]);
  expect(server.traceparents.at(-1)).toBeUndefined();
});

test("metrics have the first tags by name and all others together", async () => {
  const server = await oneServer("a", "b", "c");
  const { valuesOf } = observed({ maxTags: 1 });
  await using client = createIdClient({ address: server.address, min: 100 });
  for (const tag of ["a", "b", "c"]) await client.tag(tag).next();
  expect(await valuesOf("idmint.client.ids.loaded")).toEqual(
    new Map([
      ["a", 100],
      ["_other", 200],
    ]),
  );
  // What is in memory is told once a second.
  const ready = () => valuesOf("idmint.client.ids.ready");
  await expect.poll(ready, { timeout: 10_000 }).toEqual(
    new Map([
      ["a", 99],
      ["_other", 198],
    ]),
  );
  expect(await valuesOf("idmint.client.segment.remaining")).toEqual(
    new Map([
      ["a", 0.99],
      ["_other", 0.99],
    ]),
  );
  await client.close();
  expect(await ready()).toEqual(
    new Map([
      ["a", 0],
      ["_other", 0],
    ]),
  );
});

test("without a provider nothing breaks, and a client tells who listens to its channels", async () => {
  const server = await oneServer("orders");
  onTestFinished(instrument({ meterProvider: metrics, tracerProvider: trace }));
  const heard: string[] = [];
  const stocks: StockMessage[] = [];
  const onEvent = (message: unknown): void => void heard.push((message as EventMessage).event.type);
  const onStock = (message: unknown): void => void stocks.push(message as StockMessage);
  subscribe("idmint:event", onEvent);
  subscribe("idmint:stock", onStock);
  onTestFinished(() => {
    unsubscribe("idmint:event", onEvent);
    unsubscribe("idmint:stock", onStock);
  });
  const client = createIdClient({ address: server.address, min: 100 });
  await client.tag("orders").next();
  expect(heard).toEqual(expect.arrayContaining(["load-started", "loaded"]));
  await expect.poll(() => stocks.length, { timeout: 10_000 }).toBeGreaterThan(0);
  expect(stocks[0]?.tags).toEqual([{ tag: "orders", ready: 99, held: 100, waiting: 0 }]);
  await client.close();
  expect(stocks.at(-1)).toMatchObject({ client: stocks[0]?.client, tags: [] });
});
