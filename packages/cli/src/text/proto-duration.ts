import { type Duration, millisecondsOf } from "@idmint/core";
import { durationText } from "@idmint/core/kinds";

/** A duration of the API for people. */
export function protoDurationText(value: Duration | undefined): string {
  if (value === undefined) return "unknown";
  return durationText(Math.round(millisecondsOf(value)));
}
