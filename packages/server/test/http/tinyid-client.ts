/**
 * What Tinyid's Java client does with the answer of nextSegmentIdSimple: it counts up to the first number that leaves the
 * remainder, then in steps of delta, as long as it is not above maxId; numbers are of 64 bits and wrap. `loadedAt`: after how
 * many ids it asks for the next segment.
 */
export function clientOf(answer: string): { ids: bigint[]; loadedAt: number } {
  const [current = 0n, loading = 0n, max = 0n, delta = 0n, remainder = 0n] = answer
    .split(",")
    .map(BigInt);
  let id = current;
  if (id % delta !== remainder) {
    do id = int64(id + 1n);
    while (id % delta !== remainder && id <= current + delta);
    id = int64(id - delta);
  }
  const ids: bigint[] = [];
  let loadedAt = Infinity;
  for (;;) {
    id = int64(id + delta);
    if (id > max) return { ids, loadedAt };
    ids.push(id);
    if (id >= loading) loadedAt = Math.min(loadedAt, ids.length);
  }
}

function int64(value: bigint): bigint {
  return BigInt.asIntN(64, value);
}
