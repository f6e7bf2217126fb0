/** Numbers below this are exact, and so are their halves. */
const SAFE = 2n ** 53n;
const TWO_7 = 0x80;

/** Bytes of a whole number from 0 to 2^53 − 1 as protobuf writes it. */
export function numberSize(value: number): number {
  let size = 1;
  for (let left = value; left >= TWO_7; left /= TWO_7) size++;
  return size;
}

/** Writes a whole number from 0 to 2^53 − 1 at `at`. Answers where it ends. */
export function writeNumber(bytes: Uint8Array, at: number, value: number): number {
  let end = at;
  let left = value;
  while (left >= TWO_7) {
    const rest = Math.floor(left / TWO_7);
    bytes[end++] = (left - rest * TWO_7) | TWO_7;
    left = rest;
  }
  bytes[end] = left;
  return end + 1;
}

/** As `numberSize`, of a number from 0 to 2^63 − 1. */
export function varintSize(value: bigint): number {
  if (value < SAFE) return numberSize(Number(value));
  let size = 1;
  for (let left = value; left >= 0x80n; left >>= 7n) size++;
  return size;
}

/** As `writeNumber`, of a number from 0 to 2^63 − 1. */
export function writeVarint(bytes: Uint8Array, at: number, value: bigint): number {
  if (value < SAFE) return writeNumber(bytes, at, Number(value));
  let end = at;
  let left = value;
  for (; left >= 0x80n; left >>= 7n) bytes[end++] = Number(left & 0x7fn) | TWO_7;
  bytes[end] = Number(left);
  return end + 1;
}
