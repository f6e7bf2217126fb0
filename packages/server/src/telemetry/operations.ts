import { IdmintError } from "@idmint/core";
import { Histogram } from "../service/histogram.ts";

/** Seconds, as OpenTelemetry recommends for databases. */
const BOUNDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

export interface TimedOperation {
  readonly system: string;
  readonly operation: string;
  /** Why it failed; empty where it did not. */
  readonly error: string;
  readonly times: Histogram;
}

/** How long stores took to answer, by what was asked. Both are closed lists, as are the reasons of failures. */
export class OperationTimes {
  readonly #timed = new Map<string, TimedOperation>();

  async around<T>(system: string, operation: string, work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    let error = "";
    try {
      return await work();
    } catch (thrown) {
      error = IdmintError.from(thrown).reason;
      throw thrown;
    } finally {
      this.#record(system, operation, error, (performance.now() - startedAt) / 1_000);
    }
  }

  all(): Iterable<TimedOperation> {
    return this.#timed.values();
  }

  #record(system: string, operation: string, error: string, seconds: number): void {
    const key = `${system} ${operation} ${error}`;
    let timed = this.#timed.get(key);
    if (timed === undefined) {
      timed = { system, operation, error, times: new Histogram(BOUNDS) };
      this.#timed.set(key, timed);
    }
    timed.times.record(seconds);
  }
}
