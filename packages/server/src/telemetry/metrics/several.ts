import type { MetricName, MetricPoint, MetricSnapshot } from "./table.ts";

/** What a process told; undefined: it did not answer. */
export interface ProcessMetrics {
  /** From 1. */
  readonly process: number;
  readonly metrics: MetricSnapshot | undefined;
}

/**
 * The metrics of all processes of a server, each with its number.
 *
 * INVARIANT: each series is of one process. A process that was started again begins at 0, which whoever reads a counter
 * takes for a restart; in a sum over processes it would make the counter go down, or hide what the others did meanwhile.
 */
export function metricsOfSeveral(all: readonly ProcessMetrics[]): MetricSnapshot {
  const names = new Set(all.flatMap(({ metrics = {} }) => Object.keys(metrics) as MetricName[]));
  const merged = [...names].map((name): readonly [string, readonly MetricPoint[]] => [
    name,
    all.flatMap(({ process, metrics }) => withProcess(process, metrics?.[name] ?? [])),
  ]);
  const up = all.map(({ process, metrics }) => ({
    attributes: { process: String(process) },
    value: Number(metrics !== undefined),
  }));
  return { ...Object.fromEntries(merged), "idmint.process.up": up };
}

function withProcess(process: number, points: readonly MetricPoint[]): readonly MetricPoint[] {
  return points.map(({ attributes, value }) => ({
    attributes: { ...attributes, process: String(process) },
    value,
  }));
}
