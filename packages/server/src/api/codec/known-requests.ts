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

  /** Throws what decoding throws. */
  of(bytes: Uint8Array): Request {
    if (bytes.length > MAX_BYTES) return this.#decode(bytes);
    const cell = cellOf(bytes);
    const known = this.#cells[cell];
    if (known !== undefined && isSame(known.bytes, bytes)) return known.request;
    const request = Object.freeze(this.#decode(bytes));
    this.#cells[cell] = { bytes: Uint8Array.from(bytes), request };
    return request;
  }
}

/** FNV-1a. */
function cellOf(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193);
  return (hash ^ (hash >>> 16)) & (CELLS - 1);
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
