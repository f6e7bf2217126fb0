import { bounded } from "@idmint/core";
import type { Emit } from "../../service/events.ts";
import type { Tracing } from "../../service/trace.ts";
import { nodeTimers } from "../../timers.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { exportMetrics, exportTraces } from "./exporting.ts";
import { samplingOf } from "./sampling.ts";
import { CallTracing } from "./tracing.ts";
import { wantedOf } from "./variables.ts";

/** Who exports. */
export interface ExportPorts {
  readonly version: string;
  /** Tells this server, or process, from the others. */
  readonly instance: string;
  readonly random: () => number;
  readonly emit: Emit;
}

/** What is exported. */
export interface Exports {
  readonly tracing: Tracing | undefined;
  /** Sends what was not sent yet, as far as that goes in time. Never rejects. */
  readonly stop: () => Promise<void>;
}

/** A collector that hangs must not keep a server that stops. */
const STOP_MS = 2_500;

export async function startExports(
  { random, emit, ...its }: ExportPorts,
  metrics: Metrics | undefined,
): Promise<Exports> {
  const wanted = wantedOf(process.env);
  const sampling = samplingOf(process.env);
  const exporting = {
    ...its,
    onChange: (signal: "traces" | "metrics", why: string | undefined) =>
      emit(
        why === undefined
          ? { type: "export-back", signal }
          : { type: "export-failed", signal, why },
      ),
  };
  const stops: (() => Promise<void>)[] = [];
  let tracing: Tracing | undefined;
  if (wanted.traces !== undefined) {
    const { tracer, stop } = await exportTraces(wanted.traces, exporting);
    stops.push(stop);
    tracing = new CallTracing(tracer, sampling, random);
  }
  if (wanted.metrics !== undefined && metrics !== undefined) {
    const collect = () => metrics.collect();
    const { stop } = await exportMetrics(wanted.metrics, exporting, collect);
    stops.push(stop);
  }
  const stop = async (): Promise<void> => {
    const all = Promise.allSettled(stops.map((one) => one()));
    await bounded(all, STOP_MS, nodeTimers, () => []);
  };
  return { tracing, stop };
}
