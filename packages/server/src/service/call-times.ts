import type { Code as CodeName } from "@idmint/core";
import { Histogram } from "./histogram.ts";

/**
 * Seconds: the bounds that OpenTelemetry recommends for calls, and below them some for answers out of memory.
 */
export const CALL_BOUNDS: readonly number[] = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1,
  2.5, 5, 7.5, 10,
];

/** How long the calls of one method took, by the number of their gRPC code. */
export class MethodTimes {
  readonly byCode: (Histogram | undefined)[] = [];

  /** A call that began at `startedAt`, by performance.now(), was answered. */
  answered(code: number, startedAt: number): void {
    const times = (this.byCode[code] ??= new Histogram(CALL_BOUNDS));
    times.record((performance.now() - startedAt) / 1_000);
  }
}

/** How long calls took, by the path of their method. There are as many as the table of handlers has rows. */
export class CallTimes {
  readonly #methods = new Map<string, MethodTimes>();

  of(path: string): MethodTimes {
    const known = this.#methods.get(path);
    if (known !== undefined) return known;
    const times = new MethodTimes();
    this.#methods.set(path, times);
    return times;
  }

  entries(): Iterable<readonly [path: string, times: MethodTimes]> {
    return this.#methods;
  }
}

/** Numbers of gRPC's codes, in their order. */
const CODES: readonly (CodeName | "OK" | "UNKNOWN" | "DATA_LOSS")[] = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
];

/** The word of a gRPC code. */
export function codeName(code: number): string {
  return CODES[code] ?? "UNKNOWN";
}
