/** Requests that are remembered, of one method. A power of two. */
const CELLS = 4_096;
/** Longer ones are decoded each time. */
const MAX_BYTES = 160;

interface Known<Request> {
  readonly bytes: Uint8Array;
  readonly request: Request;
}

/**
 * Decoded requests of a method whose callers send the same few again and again, such as one for each tag.
 *
 * INVARIANT: what is answered for some bytes is what decoding them gives, since all of them are compared. A request is frozen,
 * so nobody changes what another call gets.
 *
 * Memory: at most `CELLS` requests of `MAX_BYTES`; a new one takes the place of whatever has its cell.
 */
export class KnownRequests<Request extends object> {
  readonly #decode: (bytes: Uint8Array) => Request;
  readonly #cells: (Known<Request> | undefined)[] = Array.from({ length: CELLS }, () => undefined);

  constructor(decode: (bytes: Uint8Array) => Request) {
    this.#decode = decode;
  }

  /** The request in the bytes between `from` and `to`. Throws what decoding throws. */
  of(bytes: Uint8Array, from: number, to: number): Request {
    if (to - from > MAX_BYTES) return this.#decode(bytes.subarray(from, to));
    const cell = cellOf(bytes, from, to);
    const known = this.#cells[cell];
    if (known !== undefined && isSame(known.bytes, bytes, from, to)) return known.request;
    const own = Uint8Array.from(bytes.subarray(from, to));
    const request = Object.freeze(this.#decode(own));
    this.#cells[cell] = { bytes: own, request };
    return request;
  }
}

/** FNV-1a. */
function cellOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193);
  return (hash ^ (hash >>> 16)) & (CELLS - 1);
}

function isSame(known: Uint8Array, bytes: Uint8Array, from: number, to: number): boolean {
  if (known.length !== to - from) return false;
  for (let i = from; i < to; i++) if (bytes[i] !== known[i - from]) return false;
  return true;
}
