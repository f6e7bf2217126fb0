import type { AllocateSegmentResponse } from "@idmint/proto";

export type Duration = NonNullable<AllocateSegmentResponse["maxAge"]>;

export function durationOf(ms: number): Duration {
  const seconds = Math.floor(ms / 1_000);
  return { seconds: BigInt(seconds), nanos: (ms - seconds * 1_000) * 1_000_000 };
}

/** Milliseconds of a duration; undefined without one, NaN when no whole number of milliseconds is meant. */
export function millisecondsOf(duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  const { seconds, nanos } = duration;
  const isValid = Math.abs(nanos) < 1_000_000_000 && nanos % 1_000_000 === 0;
  return isValid ? Number(seconds) * 1_000 + nanos / 1_000_000 : Number.NaN;
}
