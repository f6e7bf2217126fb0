import { IdmintError } from "../errors.ts";

const COUNTERS = 2 ** 24;
const LAST_SECOND = 2 ** 32 - 1;
/** A second's counter starts in the lower half, so that at least 2^23 ids fit the second. */
const START_BELOW = 2 ** 23;

/** What the ObjectIds that one process makes are told apart by. */
export interface ObjectIdState {
  /** Bytes 4 to 8: five random ones, or three of the machine and two of the process. */
  readonly owner: Uint8Array;
  /** Seconds since 1970 of the last one. */
  second: number;
  /** Counter of the last one. */
  counter: number;
}

/** State of a process that has made none; `owner` is the five bytes in the middle. */
export function createObjectIdState(owner: Uint8Array): ObjectIdState {
  if (owner.length !== 5)
    throw new RangeError(`${owner.length} bytes in the middle of an ObjectId`);
  return { owner: Uint8Array.from(owner), second: -1, counter: 0 };
}

/** Three bytes of a machine and two of a process; `pid` is its number, of which the lowest 16 bits are kept. */
export function machineProcess(machine: Uint8Array, pid: number): Uint8Array {
  return Uint8Array.of(...machine.subarray(0, 3), (pid >>> 8) & 0xff, pid & 0xff);
}

/**
 * The next ObjectId, as 12 bytes: seconds, owner, counter.
 *
 * INVARIANT: (second, counter) strictly increases. Each second's counter begins at a random place; when it is used up, or
 * the clock went back, the last second is carried on, if need be ahead of the clock. TIMESTAMP_EXHAUSTED from 2106 on.
 */
export function nextObjectId(
  state: ObjectIdState,
  nowMs: number,
  random: (count: number) => Uint8Array,
): Uint8Array {
  const now = Math.floor(nowMs / 1_000);
  if (now > state.second) {
    state.second = now;
    state.counter = startOf(random);
  } else if (state.counter === COUNTERS - 1) {
    state.second++;
    state.counter = startOf(random);
  } else {
    state.counter++;
  }
  if (state.second > LAST_SECOND) {
    throw new IdmintError(
      "TIMESTAMP_EXHAUSTED",
      "the 32 bits of an ObjectId's seconds ended in 2106",
    );
  }
  const bytes = new Uint8Array(12);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, state.second);
  bytes.set(state.owner, 4);
  view.setUint8(9, state.counter >>> 16);
  view.setUint16(10, state.counter & 0xffff);
  return bytes;
}

function startOf(random: (count: number) => Uint8Array): number {
  const [high = 0, middle = 0, low = 0] = random(3);
  return ((high << 16) | (middle << 8) | low) % START_BELOW;
}
