import { type Duration, millisecondsOf } from "@idmint/core";

/** Milliseconds of a duration; undefined without one, NaN when no whole number of milliseconds is meant. */
export function wholeMillisecondsOf(duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  const { nanos } = duration;
  const isValid = Math.abs(nanos) < 1_000_000_000 && nanos % 1_000_000 === 0;
  return isValid ? millisecondsOf(duration) : Number.NaN;
}
