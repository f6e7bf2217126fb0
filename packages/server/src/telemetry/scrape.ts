import type { Emit } from "../service/events.ts";
import type { MetricSnapshot } from "./metrics/table.ts";

/** Metrics in Prometheus' text format. OpenTelemetry is loaded when somebody asks for the first time. */
export async function scraped(
  metrics: { collect(): Promise<MetricSnapshot> },
  emit: Emit,
): Promise<string> {
  try {
    const { prometheusText } = await import("./otel/prometheus.ts");
    return prometheusText(await metrics.collect());
  } catch (cause) {
    emit({ type: "internal-error", where: "/metrics", cause });
    throw cause;
  }
}
