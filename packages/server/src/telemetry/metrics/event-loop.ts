import { monitorEventLoopDelay, performance } from "node:perf_hooks";

const RESOLUTION_MS = 10;
const NS = 1e9;

/** How long the event loop keeps its timers waiting, in seconds, and how much of the time it works. */
export interface LoopReading {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly utilization: number;
}

/** Watches the event loop of this process. Each reading is about the time since the one before. */
export class EventLoopWatch {
  readonly #delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #usage = performance.eventLoopUtilization();

  start(): void {
    this.#delays.enable();
  }

  stop(): void {
    this.#delays.disable();
  }

  read(): LoopReading {
    const delays = this.#delays;
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, this.#usage);
    this.#usage = now;
    // What it measures is the time between two of its own timers.
    const late = (ns: number): number =>
      delays.count === 0 ? 0 : Math.max(0, ns / NS - RESOLUTION_MS / 1_000);
    const p50 = late(delays.percentile(50));
    const p99 = late(delays.percentile(99));
    const max = late(delays.max);
    delays.reset();
    return { p50, p99, max, utilization };
  }
}
