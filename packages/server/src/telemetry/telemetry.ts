import type { Store } from "@idmint/core/server";
import type { CallTimes } from "../service/call-times.ts";
import type { Emit } from "../service/events.ts";
import type { Tracing } from "../service/trace.ts";
import { type MetricServices, Metrics } from "./metrics/metrics.ts";
import { Operations } from "./operations.ts";
import { scraped } from "./scrape.ts";
import type * as Otel from "./otel/export.ts";

export interface TelemetryOptions {
  readonly metricsCollect: "on" | "off";
  readonly metricsTags: number;
}

/** Any of OpenTelemetry's variables that may ask for an export. */
const ASKS = /^OTEL_(?:(?:TRACES|METRICS)_EXPORTER|EXPORTER_OTLP_.*ENDPOINT)$/;

/** What a server tells of itself besides its log: metrics and traces. */
export class Telemetry {
  /** Undefined: none are collected. */
  readonly metrics: Metrics | undefined;
  readonly #operations = new Operations();
  #exports: Otel.Exports | undefined;

  constructor({ metricsCollect, metricsTags }: TelemetryOptions) {
    this.metrics = metricsCollect === "on" ? new Metrics(metricsTags, this.#operations) : undefined;
  }

  readonly hear: Emit = (event) => this.metrics?.hear(event);

  /**
   * Begins to export what OpenTelemetry's variables ask for, and loads it only then. Throws INVALID_ARGUMENT for what they
   * cannot be.
   */
  async open(ports: Otel.ExportPorts): Promise<void> {
    const isAsked = Object.entries(process.env).some(([name, value]) => ASKS.test(name) && value);
    if (!isAsked) return;
    const { startExports } = await import("./otel/export.ts");
    this.#exports = await startExports(ports, this.metrics);
  }

  /**
   * The same store, whose calls are observed; itself where nobody would hear of them. `place`: its URL, as it is shown to
   * people.
   */
  observed(store: Store, place: string): Store {
    return this.#observes ? this.#operations.observed(store, place) : store;
  }

  get aroundRedis(): Operations["aroundRedis"] | undefined {
    return this.#observes ? this.#operations.aroundRedis : undefined;
  }

  get callTimes(): CallTimes | undefined {
    return this.metrics?.callTimes;
  }

  get tracing(): Tracing | undefined {
    return this.#exports?.tracing;
  }

  /** What answers a scrape; undefined: no metrics are collected. */
  scrape(emit: Emit): (() => Promise<string>) | undefined {
    const { metrics } = this;
    return metrics === undefined ? undefined : () => scraped(metrics, emit);
  }

  /** There is something to collect from now on. */
  start(services: MetricServices): void {
    this.metrics?.start(services);
  }

  /** Sends what was not sent yet, in bounded time. */
  async stop(): Promise<void> {
    await this.#exports?.stop();
    this.metrics?.stop();
  }

  get #observes(): boolean {
    return this.metrics !== undefined || this.tracing !== undefined;
  }
}
