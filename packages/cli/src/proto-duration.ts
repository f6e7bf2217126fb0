import type { SegmentKind } from "@idmint/proto";
import { durationText } from "./parse.ts";

/** A duration of the API. */
type ProtoDuration = NonNullable<SegmentKind["holdFor"]>;

/** Milliseconds as a duration of the API; undefined stays undefined. */
export function durationOf(ms: number | undefined): ProtoDuration | undefined {
  if (ms === undefined) return undefined;
  return { seconds: BigInt(Math.floor(ms / 1_000)), nanos: (ms % 1_000) * 1_000_000 };
}

/** A duration of the API in milliseconds. */
export function millisecondsOf({ seconds, nanos }: ProtoDuration): number {
  return Number(seconds) * 1_000 + Math.round(nanos / 1e6);
}

/** A duration of the API for people. */
export function protoDurationText(value: ProtoDuration | undefined): string {
  if (value === undefined) return "unknown";
  return durationText(millisecondsOf(value));
}

/** A duration as proto3 JSON. */
export function durationJson(value: ProtoDuration | undefined): string | null {
  if (value === undefined) return null;
  // As proto3 JSON has it: 0, 3, 6 or 9 digits, as few as state it exactly.
  const nanos = String(value.nanos)
    .padStart(9, "0")
    .replace(/(?:000){1,3}$/, "");
  const fraction = nanos === "" ? "" : `.${nanos}`;
  return `${value.seconds}${fraction}s`;
}
