import { type Option, option } from "./option.ts";
import { integer, oneOf } from "./types.ts";

/** What a server tells of itself. */
export interface TelemetryConfig {
  readonly metricsCollect: "on" | "off";
  readonly metricsTags: number;
}

/** The options about metrics; a part of the table. Exporters are configured by OpenTelemetry's own variables. */
export const TELEMETRY_OPTIONS: {
  readonly [K in keyof TelemetryConfig]: Option<TelemetryConfig[K]>;
} = {
  metricsCollect: option(
    "metrics.collect",
    oneOf("on", "off"),
    "on",
    "Count and time what the server does, and answer `/metrics` on the HTTP address in Prometheus' format.",
  ),
  metricsTags: option(
    "metrics.tags",
    integer(0, 1_000),
    "100",
    "How many tags have metrics of their own: the busiest ones. All others are counted together.",
  ),
};
