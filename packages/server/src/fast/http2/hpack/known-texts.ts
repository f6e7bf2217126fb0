import type { Field } from "./fields.ts";

/** Fields that are remembered. A power of two. */
const CELLS = 256;
/** Longer texts are read each time. */
const MAX_BYTES = 64;

interface Known {
  /** As it came, with or without Huffman's code. */
  readonly octets: Uint8Array;
  readonly isHuffman: boolean;
  readonly field: Field;
}

/**
 * Fields that callers send as text with each request, though it is the same each time: nghttp2, and with it Node.js and curl,
 * keeps `:path` and `content-length` out of the table.
 *
 * INVARIANT: what is answered for some octets of a name is what reading them gives, since all of them are compared.
 *
 * Memory: at most `CELLS` fields of `MAX_BYTES`; a new one takes the place of whatever has its cell.
 */
export class KnownTexts {
  readonly #cells: (Known | undefined)[] = Array.from({ length: CELLS }, () => undefined);

  /** The field with this value, if it is known. */
  of(name: string, isHuffman: boolean, bytes: Buffer, from: number, to: number): Field | undefined {
    if (to - from > MAX_BYTES) return undefined;
    const known = this.#cells[cellOf(bytes, from, to)];
    const isSame =
      known !== undefined &&
      known.isHuffman === isHuffman &&
      known.field.name === name &&
      areSame(known.octets, bytes, from, to);
    return isSame ? known.field : undefined;
  }

  add(field: Field, isHuffman: boolean, bytes: Buffer, from: number, to: number): void {
    if (to - from > MAX_BYTES) return;
    const octets = Uint8Array.from(bytes.subarray(from, to));
    this.#cells[cellOf(bytes, from, to)] = { octets, isHuffman, field };
  }
}

/** FNV-1a. */
function cellOf(bytes: Buffer, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193);
  return (hash ^ (hash >>> 16)) & (CELLS - 1);
}

function areSame(octets: Uint8Array, bytes: Buffer, from: number, to: number): boolean {
  if (octets.length !== to - from) return false;
  for (let i = from; i < to; i++) if (bytes[i] !== octets[i - from]) return false;
  return true;
}
