import { type HrTime, ValueType } from "@opentelemetry/api";
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type MetricData,
} from "@opentelemetry/sdk-metrics";
import {
  type MetricName,
  type MetricPoint,
  METRIC_NAMES,
  METRICS,
  type MetricSnapshot,
} from "../metrics/table.ts";

/** Metrics as OpenTelemetry's exporters take them. `nameOf`: what they are called there, and their units. */
export function metricData(
  snapshot: MetricSnapshot,
  startTime: HrTime,
  endTime: HrTime,
  nameOf: (name: MetricName) => { readonly name: string; readonly unit: string },
): MetricData[] {
  return METRIC_NAMES.flatMap((metric): MetricData[] => {
    const points = snapshot[metric] ?? [];
    if (points.length === 0) return [];
    const { kind, text: description } = METRICS[metric];
    const descriptor = { ...nameOf(metric), description, valueType: ValueType.DOUBLE };
    const aggregationTemporality = AggregationTemporality.CUMULATIVE;
    const common = { descriptor, aggregationTemporality };
    const times = { startTime, endTime };
    if (kind === "histogram") {
      const dataPoints = points.map((point) => histogramPoint(point, times));
      return [{ ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints }];
    }
    const dataPoints = points.map((point) => numberPoint(point, times));
    return kind === "sum"
      ? [{ ...common, dataPointType: DataPointType.SUM, dataPoints, isMonotonic: true }]
      : [{ ...common, dataPointType: DataPointType.GAUGE, dataPoints }];
  });
}

type Times = Pick<DataPoint<unknown>, "startTime" | "endTime">;

function numberPoint({ attributes, value }: MetricPoint, times: Times): DataPoint<number> {
  return { ...times, attributes: { ...attributes }, value: typeof value === "number" ? value : 0 };
}

function histogramPoint({ attributes, value }: MetricPoint, times: Times) {
  const { bounds, counts, sum } =
    typeof value === "number" ? { bounds: [], counts: [], sum: value } : value;
  const count = counts.reduce((total, one) => total + one, 0);
  const buckets = { boundaries: [...bounds], counts: [...counts] };
  return { ...times, attributes: { ...attributes }, value: { buckets, sum, count } };
}
