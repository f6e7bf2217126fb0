import { PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { emptyResource } from "@opentelemetry/resources";
import { prometheusName } from "../metrics/prometheus-name.ts";
import { METRIC_NAMES, METRICS, type MetricName, type MetricSnapshot } from "../metrics/table.ts";
import { metricData } from "./metric-data.ts";

const TOTAL = /_total$/;
/** The format has no place for times of ours: whoever scrapes knows when. */
const NO_TIME: [number, number] = [0, 0];

/** Metrics in Prometheus' text format. */
export function prometheusText(snapshot: MetricSnapshot): string {
  const metrics = metricData(snapshot, NO_TIME, NO_TIME, (name) => NAMES[name]);
  const scopeMetrics = [{ scope: { name: "idmint" }, metrics }];
  const serializer = new PrometheusSerializer(undefined, false, undefined, true, true);
  return serializer.serialize({ resource: emptyResource(), scopeMetrics });
}

/** The serializer puts `_total` behind counters itself, and no units. */
const NAMES = Object.fromEntries(
  METRIC_NAMES.map((name) => {
    const its = prometheusName(name);
    const isSum = METRICS[name].kind === "sum";
    return [name, { name: isSum ? its.replace(TOTAL, "") : its, unit: "" }];
  }),
) as Readonly<Record<MetricName, { readonly name: string; readonly unit: string }>>;
