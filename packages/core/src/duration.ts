/** A google.protobuf.Duration, as the API's messages have it. */
export interface Duration {
  readonly seconds: bigint;
  readonly nanos: number;
}

/** Milliseconds, which are not negative, as a duration; undefined stays undefined. */
export function durationOf(ms: number): Duration;
export function durationOf(ms: number | undefined): Duration | undefined;
export function durationOf(ms: number | undefined): Duration | undefined {
  if (ms === undefined) return undefined;
  const seconds = Math.floor(ms / 1_000);
  return { seconds: BigInt(seconds), nanos: Math.round((ms - seconds * 1_000) * 1_000_000) };
}

/** A duration in milliseconds and parts of them; undefined stays undefined. */
export function millisecondsOf(duration: Duration): number;
export function millisecondsOf(duration: Duration | undefined): number | undefined;
export function millisecondsOf(duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  return Number(duration.seconds) * 1_000 + duration.nanos / 1_000_000;
}
