/** Numbers below this are exact, and so are their halves. */
const SAFE = 2n ** 53n;
const TWO_7 = 0x80;

/** Bytes of a number from 0 to 2^63 − 1 as protobuf writes it. */
export function varintSize(value: bigint): number {
  let size = 1;
  if (value < SAFE) {
    for (let left = Number(value); left >= TWO_7; left /= TWO_7) size++;
    return size;
  }
  for (let left = value; left >= 0x80n; left >>= 7n) size++;
  return size;
}

/** Writes a number from 0 to 2^63 − 1 at `at`. Answers where it ends. */
export function writeVarint(bytes: Uint8Array, at: number, value: bigint): number {
  let end = at;
  if (value >= SAFE) {
    let left = value;
    for (; left >= 0x80n; left >>= 7n) bytes[end++] = Number(left & 0x7fn) | TWO_7;
    bytes[end] = Number(left);
    return end + 1;
  }
  let left = Number(value);
  while (left >= TWO_7) {
    const rest = Math.floor(left / TWO_7);
    bytes[end++] = (left - rest * TWO_7) | TWO_7;
    left = rest;
  }
  bytes[end] = left;
  return end + 1;
}
