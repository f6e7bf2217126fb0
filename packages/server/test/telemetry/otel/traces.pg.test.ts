// Traces of calls of a real server with PostgreSQL and Redis, as a collector gets them.
import { type Client, Metadata, type ServiceError } from "@grpc/grpc-js";
import {
  CreateTagRequest,
  type DeepPartial,
  GenerateIdRequest,
  IdServiceService,
  SequenceBackend,
  type Tag,
  TagServiceService,
} from "@idmint/proto";
import { createTestDatabase } from "@idmint/testkit/postgres";
import { serverEnv } from "@idmint/testkit";
import { afterEach, expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../../src/config/load.ts";
import { startServer } from "../../../src/main/app.ts";
import { makeStore } from "../../../src/main/stores.ts";
import type { ServerEvent } from "../../../src/service/events.ts";
import { METRIC_NAMES } from "../../../src/telemetry/metrics/table.ts";
import { ownRedis } from "../../store/redis/support.ts";
import { call, clientsOf, createTag, generateId } from "../../support.ts";
import { attributesOf, type Collector, type ReceivedSpan, startCollector } from "./collector.ts";

const UNSAFE = "fsync,full_page_writes";
const SERVER = 2;
const CLIENT = 3;
const METHOD = IdServiceService.generateId.path.slice(1);

const before = { ...process.env };
afterEach(() => {
  for (const name of Object.keys(process.env))
    if (name.startsWith("OTEL_")) delete process.env[name];
  Object.assign(process.env, before);
});

async function start(collector: Collector, env: Record<string, string> = {}) {
  Object.assign(process.env, {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_EXPORTER_OTLP_HEADERS: "x-key=canary-secret",
    OTEL_SERVICE_NAME: "orders-ids",
    ...env,
  });
  const database = await createTestDatabase();
  onTestFinished(() => database.close());
  const redis = await ownRedis();
  const flags = {
    "store-url": database.url,
    "allow-unsafe-store": UNSAFE,
    "redis-urls": `main=${redis.url}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
  };
  const config = loadConfig({ env: serverEnv(), flags, defaults: {} });
  await makeStore(config);
  const lines: string[] = [];
  const events: ServerEvent[] = [];
  const server = await startServer(config, {
    logSink: { write: (line) => lines.push(line) },
    authorise: (_context, _needs, request) => {
      if ((request as { tag?: unknown }).tag === "broken") throw new Error("unforeseen");
    },
    onEvent: (event) => events.push(event),
  });
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= server.close());
  onTestFinished(stop);
  return { server, storeUrl: database.url, stop, lines, events, ...clientsOf(server.grpcAddress) };
}

/** A call with a header of its caller's trace. */
function tracedCall(client: Client, tag: string, traceparent: string): Promise<void> {
  const metadata = new Metadata();
  metadata.set("traceparent", traceparent);
  const { path } = IdServiceService.generateId;
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      path,
      (request: GenerateIdRequest) => Buffer.from(GenerateIdRequest.encode(request).finish()),
      (bytes: Buffer) => bytes,
      GenerateIdRequest.fromPartial({ tag }),
      metadata,
      { deadline: Date.now() + 10_000 },
      (error: ServiceError | null) => (error === null ? resolve() : reject(error)),
    );
  });
}

const traceIdOf = (digit: string): string => digit.repeat(32);
const callerOf = (digit: string): string => digit.repeat(16);
const traceparent = (digit: string, flags = "01"): string =>
  `00-${traceIdOf(digit)}-${callerOf(digit)}-${flags}`;

function ofTrace({ spans }: Collector, digit: string): readonly ReceivedSpan[] {
  return spans.filter(({ traceId }) => traceId === traceIdOf(digit));
}

test("a trace leads from the caller to the server, and to PostgreSQL and Redis where the call waits for them", async () => {
  const collector = await startCollector();
  const it = await start(collector);
  await createTag(it, "orders");
  const backend = SequenceBackend.REDIS;
  const counted: DeepPartial<Tag> = {
    name: "counted",
    kind: { $case: "sequence", value: { backend } },
  };
  await call(it.tags, TagServiceService.createTag, CreateTagRequest.fromPartial({ tag: counted }));
  const strict: DeepPartial<Tag> = { name: "strict", kind: { $case: "sequence", value: {} } };
  await call(it.tags, TagServiceService.createTag, CreateTagRequest.fromPartial({ tag: strict }));
  await tracedCall(it.ids, "orders", traceparent("a"));
  await tracedCall(it.ids, "counted", traceparent("b"));
  await tracedCall(it.ids, "strict", traceparent("c"));
  // Many at once share statements: each span is of a trace that waited for it.
  await Promise.all(
    ["d", "e", "f"].map((digit) => tracedCall(it.ids, "strict", traceparent(digit))),
  );
  await expect(tracedCall(it.ids, "unknown", traceparent("9"))).rejects.toThrow("TAG_NOT_FOUND");
  // Its caller is not traced, so it is not either.
  await tracedCall(it.ids, "strict", traceparent("8", "00"));
  await it.stop();

  for (const digit of ["a", "b", "c", "d", "e", "f", "9"]) {
    const [server, ...others] = ofTrace(collector, digit).filter(({ kind }) => kind === SERVER);
    expect(others).toEqual([]);
    expect(server?.parentSpanId).toBe(callerOf(digit));
    expect(server?.name).toBe(METHOD);
    for (const span of ofTrace(collector, digit)) {
      if (span !== server) expect(span.parentSpanId).toBe(server?.spanId);
    }
  }
  const storeSpans = (digit: string) =>
    ofTrace(collector, digit)
      .filter(({ kind }) => kind === CLIENT)
      .map(attributesOf);
  const url = new URL(it.storeUrl);
  const where = {
    "db.system.name": "postgresql",
    "server.address": url.hostname,
    "server.port": Number(url.port),
    "db.namespace": url.pathname.slice(1),
  };
  const lookup = { ...where, "db.operation.name": "getTags" };
  const grant = { ...where, "db.operation.name": "grant" };
  expect(storeSpans("a")).toEqual([lookup, grant]);
  expect(storeSpans("b")).toContainEqual({
    "db.system.name": "redis",
    "db.operation.name": "sequence_issue",
  });
  expect(storeSpans("c")).toContainEqual(grant);
  expect(["d", "e", "f"].flatMap(storeSpans)).toContainEqual(grant);
  const [refused] = ofTrace(collector, "9").filter(({ kind }) => kind === SERVER);
  expect(attributesOf(refused!)).toMatchObject({
    "rpc.system.name": "grpc",
    "rpc.method": METHOD,
    "rpc.response.status_code": "NOT_FOUND",
    "error.type": "NOT_FOUND",
  });
  // Nobody's fault but the caller's.
  expect(refused?.status?.code ?? 0).toBe(0);
  expect(ofTrace(collector, "8")).toEqual([]);
  // Polls go on for as long as the server runs, and are for nobody's call.
  const operations = collector.spans.map((span) => attributesOf(span)["db.operation.name"]);
  expect(operations).not.toContain("changes");
  expect(collector.resources[0]).toMatchObject({ "service.name": "orders-ids" });
  expect(collector.headers[0]?.["x-key"]).toBe("canary-secret");
  expect(it.lines.join("")).not.toContain("canary-secret");
});

test("a sampler of 0 leaves callers without a trace alone, and lines of the log have the ids of those that are traced", async () => {
  const collector = await startCollector();
  const sampler = {
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0",
  };
  const it = await start(collector, sampler);
  await createTag(it, "orders");
  await generateId(it, "orders");
  await tracedCall(it.ids, "orders", traceparent("a"));
  await expect(tracedCall(it.ids, "broken", traceparent("b"))).rejects.toThrow("INTERNAL");
  await it.stop();
  const [first, second] = collector.spans;
  expect(collector.spans.map(({ traceId }) => traceId)).toEqual([traceIdOf("a"), traceIdOf("b")]);
  expect(first?.status?.code ?? 0).toBe(0);
  expect(second?.status?.code).toBe(2);
  const logged = it.lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => "trace_id" in line);
  expect(logged).toHaveLength(1);
  expect(logged[0]).toMatchObject({ trace_id: traceIdOf("b"), span_id: second?.spanId });
});

test("metrics go to the collector too, and a collector that fails is told of once", async () => {
  const collector = await startCollector();
  collector.status = 400;
  const it = await start(collector, { OTEL_METRIC_EXPORT_INTERVAL: "200" });
  await createTag(it, "orders");
  await generateId(it, "orders");
  const told = (): readonly ServerEvent[] =>
    it.events.filter((event) => event.type === "export-failed" && event.signal === "metrics");
  await expect.poll(() => told().length, { timeout: 20_000 }).toBe(1);
  collector.status = 200;
  await expect
    .poll(() => it.events.some(({ type }) => type === "export-back"), { timeout: 20_000 })
    .toBe(true);
  expect(told()).toHaveLength(1);
  expect(JSON.stringify(told())).not.toContain("127.0.0.1");
  await expect.poll(() => collector.metrics.get("idmint.ids.issued")).toBe(2);
  for (const name of collector.metrics.keys()) expect(METRIC_NAMES).toContain(name);
  expect(collector.metrics.get("rpc.server.call.duration")).toBeGreaterThan(0);
  await it.stop();
});
