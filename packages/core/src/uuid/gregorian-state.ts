import { GREGORIAN_OFFSET_MS } from "./dce-state.ts";

/** Steps of 100 nanoseconds in a millisecond. */
const STEPS = 10_000;

/** The time of the last UUID of version 1 or 6 that a process made. */
export interface GregorianState {
  /** Milliseconds since 1970. */
  ms: number;
  /** 0 … 9,999, steps of 100 nanoseconds within the millisecond. */
  steps: number;
}

/** State of a process that has made none. */
export function createGregorianState(): GregorianState {
  return { ms: -1, steps: 0 };
}

/**
 * Moves on to the time of the next UUID of version 1 or 6.
 *
 * INVARIANT: times strictly increase, so that with one clock sequence and node no UUID is made twice, and those of version 6
 * increase. A clock that went back, or more than 10,000 in a millisecond, is carried on from the last time.
 */
export function nextGregorian(state: GregorianState, nowMs: number): void {
  if (nowMs > state.ms) {
    state.ms = nowMs;
    state.steps = 0;
  } else if (state.steps === STEPS - 1) {
    state.ms++;
    state.steps = 0;
  } else {
    state.steps++;
  }
}

/** A UUID of version 1, or 6, whose order is that of its times, as 16 bytes. `clockSequence` is 0 … 2^14 − 1. */
export function gregorianUuid(
  version: 1 | 6,
  { ms, steps }: GregorianState,
  clockSequence: number,
  node: Uint8Array,
): Uint8Array {
  const time = BigInt(ms + GREGORIAN_OFFSET_MS) * BigInt(STEPS) + BigInt(steps);
  const bytes = new Uint8Array(16);
  const view = new DataView(bytes.buffer);
  if (version === 1) {
    view.setUint32(0, Number(time & 0xffff_ffffn));
    view.setUint16(4, Number((time >> 32n) & 0xffffn));
    view.setUint16(6, 0x1000 | Number(time >> 48n));
  } else {
    view.setUint32(0, Number(time >> 28n));
    view.setUint16(4, Number((time >> 12n) & 0xffffn));
    view.setUint16(6, 0x6000 | Number(time & 0xfffn));
  }
  view.setUint16(8, 0x8000 | clockSequence);
  bytes.set(node, 10);
  return bytes;
}
