/** Drawn at once: a draw takes microseconds, however few bytes it is for. */
const POOL_BYTES = 4_096;

/**
 * Random bytes out of larger draws.
 *
 * INVARIANT: no byte is handed out twice. A pool that is used up is left to those who have parts of it.
 */
export function pooledRandom(draw: (count: number) => Uint8Array): (count: number) => Uint8Array {
  let pool = new Uint8Array(0);
  let used = 0;
  return (count) => {
    if (used + count > pool.length) {
      pool = Uint8Array.from(draw(Math.max(POOL_BYTES, count)));
      used = 0;
    }
    used += count;
    return pool.subarray(used - count, used);
  };
}
