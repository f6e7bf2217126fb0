import type { HrTime, Tracer } from "@opentelemetry/api";
import { type ExportResult, ExportResultCode, hrTime } from "@opentelemetry/core";
import {
  detectResources,
  type Resource,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from "@opentelemetry/resources";
import {
  type CollectionResult,
  MeterProvider,
  type MetricProducer,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from "@opentelemetry/sdk-metrics";
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  type SpanExporter,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { type MetricName, METRICS, type MetricSnapshot } from "../metrics/table.ts";
import { metricData } from "./metric-data.ts";
import type { Protocol } from "./variables.ts";

/** Who exports. Attributes of the environment (OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME) win. */
export interface Exporting {
  readonly version: string;
  /** Tells this server, or process, from the others. */
  readonly instance: string;
  /** An export failed, or, with undefined, works again. */
  readonly onChange: (signal: "traces" | "metrics", why: string | undefined) => void;
}

const EXPORT_EVERY_MS = 60_000;
const SHUTDOWN_MS = 2_000;

/** Spans go out by OTLP in the background; those that find the queue full are dropped. */
export async function exportTraces(
  protocol: Protocol,
  exporting: Exporting,
): Promise<{ readonly tracer: Tracer; readonly stop: () => Promise<void> }> {
  const { OTLPTraceExporter } =
    protocol === "http/json"
      ? await import("@opentelemetry/exporter-trace-otlp-http")
      : await import("@opentelemetry/exporter-trace-otlp-proto");
  const exporter: SpanExporter = watched(new OTLPTraceExporter(), "traces", exporting);
  const provider = new TracerProvider({
    resource: resourceOf(exporting),
    // Decided before: see sampling.ts.
    sampler: new AlwaysOnSampler(),
    spanProcessors: [new BatchSpanProcessor({ exporter, exportTimeoutMillis: SHUTDOWN_MS })],
  });
  const tracer = provider.getTracer("idmint", exporting.version);
  return { tracer, stop: () => provider.shutdown() };
}

/** Metrics go out by OTLP once a minute, or as OTEL_METRIC_EXPORT_INTERVAL says. */
export async function exportMetrics(
  protocol: Protocol,
  exporting: Exporting,
  collect: () => Promise<MetricSnapshot>,
): Promise<{ readonly stop: () => Promise<void> }> {
  const { OTLPMetricExporter } =
    protocol === "http/json"
      ? await import("@opentelemetry/exporter-metrics-otlp-http")
      : await import("@opentelemetry/exporter-metrics-otlp-proto");
  const exporter: PushMetricExporter = watched(new OTLPMetricExporter(), "metrics", exporting);
  const everyMs = Number(process.env["OTEL_METRIC_EXPORT_INTERVAL"] ?? EXPORT_EVERY_MS);
  const exportIntervalMillis = everyMs > 0 ? everyMs : EXPORT_EVERY_MS;
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis,
    exportTimeoutMillis: Math.min(exportIntervalMillis, SHUTDOWN_MS),
    metricProducers: [producerOf(collect, exporting.version)],
  });
  const provider = new MeterProvider({ resource: resourceOf(exporting), readers: [reader] });
  return { stop: () => provider.shutdown() };
}

function producerOf(collect: () => Promise<MetricSnapshot>, version: string): MetricProducer {
  const startTime: HrTime = hrTime();
  const scope = { name: "idmint", version };
  return {
    collect: async (): Promise<CollectionResult> => {
      const metrics = metricData(await collect(), startTime, hrTime(), (name: MetricName) => ({
        name,
        unit: METRICS[name].unit,
      }));
      const resource = resourceFromAttributes({});
      return { resourceMetrics: { resource, scopeMetrics: [{ scope, metrics }] }, errors: [] };
    },
  };
}

function resourceOf({ version, instance }: Exporting): Resource {
  const own = resourceFromAttributes({
    "service.name": "idmint",
    "service.version": version,
    "service.instance.id": instance,
  });
  const detectors = [resourceAttributesEnvDetector, serviceNameEnvDetector];
  return own.merge(detectResources({ detectors }));
}

type Export = (items: unknown, done: (result: ExportResult) => void) => void;

/** The same exporter, which tells when exports begin to fail and when they work again. */
function watched<Exporter extends SpanExporter | PushMetricExporter>(
  exporter: Exporter,
  signal: "traces" | "metrics",
  { onChange }: Exporting,
): Exporter {
  const inner = exporter.export.bind(exporter) as Export;
  let isFailing = false;
  const outer: Export = (items, done) => {
    inner(items, (result) => {
      const failed = result.code !== ExportResultCode.SUCCESS;
      // Not the message: it may hold the URL, and with it a password.
      if (failed !== isFailing)
        onChange(signal, failed ? (result.error?.name ?? "Error") : undefined);
      isFailing = failed;
      done(result);
    });
  };
  return Object.assign(exporter, { export: outer });
}
