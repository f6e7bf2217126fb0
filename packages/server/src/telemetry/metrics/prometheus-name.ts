import { type MetricName, METRICS } from "./table.ts";

/** Units that Prometheus wants at the end of a name. What is only counted has none. */
const SUFFIXES: Readonly<Record<string, string>> = { s: "_seconds", By: "_bytes", "1": "_ratio" };

/** The name of a metric in Prometheus' format, as OpenTelemetry translates it. */
export function prometheusName(name: MetricName): string {
  const { unit, kind } = METRICS[name];
  const total = kind === "sum" ? "_total" : "";
  return `${name.replaceAll(".", "_")}${SUFFIXES[unit] ?? ""}${total}`;
}
