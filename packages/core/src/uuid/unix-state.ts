const COUNTERS = 2 ** 32;

/** Time and counter of the last UUID of version 7 that a maker made. */
export interface UnixState {
  /** Milliseconds since 1970. */
  ms: number;
  /** 0 … 2^32 − 1, within the millisecond. */
  counter: number;
}

/** State of a maker that has made none. */
export function createUnixState(): UnixState {
  return { ms: 0, counter: 0 };
}

/**
 * The next UUID of version 7, as 16 bytes: 48 bits of milliseconds, 32 of a counter, 42 random ones.
 *
 * INVARIANT: (ms, counter) strictly increases. Each millisecond's counter begins at a random place in the lower half; when it
 * is used up, or the clock went back, the last millisecond is carried on, if need be ahead of the clock.
 */
export function nextUnixUuid(
  state: UnixState,
  nowMs: number,
  random: (count: number) => Uint8Array,
): Uint8Array {
  const bytes = Uint8Array.from(random(16));
  const view = new DataView(bytes.buffer);
  const start = view.getUint32(6) >>> 1;
  if (nowMs > state.ms) {
    state.ms = nowMs;
    state.counter = start;
  } else if (state.counter === COUNTERS - 1) {
    state.ms++;
    state.counter = start;
  } else {
    state.counter++;
  }
  const { ms, counter } = state;
  view.setUint16(0, Math.floor(ms / 2 ** 32));
  view.setUint32(2, ms % 2 ** 32);
  view.setUint16(6, 0x7000 | (counter >>> 20));
  view.setUint16(8, 0x8000 | ((counter >>> 6) & 0x3fff));
  view.setUint8(10, ((counter & 0x3f) << 2) | (view.getUint8(10) & 3));
  return bytes;
}
