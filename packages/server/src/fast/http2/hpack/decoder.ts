import { type Field, fieldOf, sizeOf } from "./fields.ts";
import { decodeHuffman, longestOf } from "./huffman.ts";
import { KnownTexts } from "./known-texts.ts";
import { STATIC_TABLE } from "./static-table.ts";

/** The table's size that HTTP/2 begins with, and the largest that peers may use (SETTINGS_HEADER_TABLE_SIZE). */
export const TABLE_BYTES = 4_096;
const MIN_FIELD_BYTES = 32;
/** What a field in the table takes beyond its size: an object and two strings are more than RFC 7541, 4.1 counts for them. */
export const FIELD_BYTES = 88;
/** A power of two, more than the fields that fit into the table. */
const CELLS = 256;
/** A string of more bytes than this fits neither a list nor the table. */
const MAX_STRING_BYTES = 64 * 1_024;

/** A block of fields that cannot be decoded: the connection's table is not known any more (COMPRESSION_ERROR). */
export class HpackError extends Error {}

/** Takes the fields of a block, in their order. */
export type Take = (field: Field) => void;

/**
 * The decoder of one connection (RFC 7541).
 *
 * INVARIANT: the dynamic table is what the peer's encoder has, whatever becomes of the block's stream. So each block is decoded
 * to its end, and a list that is too large is cut but never left.
 *
 * Memory: the table has at most `TABLE_BYTES` as counted, and no string is made of a field beyond `maxListBytes`. Whoever keeps
 * the decoder is told how much its table takes more, or less.
 */
export class HpackDecoder {
  readonly #maxListBytes: number;
  readonly #tell: (bytes: number) => void;
  /** The newest field is at `#newest`; older ones lie before it, around the end. Grows with them: most connections are idle. */
  readonly #cells: (Field | undefined)[] = [];
  #newest = CELLS - 1;
  #count = 0;
  #bytes = 0;
  #limit = TABLE_BYTES;
  /** Where the next octet is read, and where the block ends. */
  #at = 0;
  #end = 0;
  #block: Buffer = EMPTY;

  constructor(maxListBytes: number, tell: (bytes: number) => void = () => undefined) {
    this.#maxListBytes = maxListBytes;
    this.#tell = tell;
  }

  /** Keeps nothing any more. Nothing is to be decoded after that. */
  forget(): void {
    this.#limit = 0;
    this.#evictFor(0);
  }

  /** Decodes one block. Answers the size of its list; above `maxListBytes` not all fields were taken. */
  decode(block: Buffer, from: number, to: number, take: Take): number {
    this.#block = block;
    this.#at = from;
    this.#end = to;
    let size = 0;
    let mayResize = true;
    while (this.#at < this.#end) {
      const first = block[this.#at] ?? 0;
      if (first >= 0x80) {
        const field = this.#fieldAt(this.#integer(0x7f));
        size += field.size;
        if (size <= this.#maxListBytes) take(field);
      } else if (first >= 0x40) {
        size += this.#literal(0x3f, true, size, take);
      } else if (first >= 0x20) {
        // RFC 7541, 4.2: only in front of a block.
        if (!mayResize) throw new HpackError("a change of the table's size behind a field");
        this.#resize(this.#integer(0x1f));
        continue;
      } else {
        size += this.#literal(0x0f, false, size, take);
      }
      mayResize = false;
    }
    this.#block = EMPTY;
    return size;
  }

  /** A field with a value of its own. Answers its size. */
  #literal(mask: number, isKept: boolean, before: number, take: Take): number {
    const index = this.#integer(mask);
    const mayBeKnown = !isKept && OFTEN_TEXT.has(index);
    if (mayBeKnown) {
      const known = this.#knownText(this.#fieldAt(index).name);
      if (known !== undefined) {
        if (before + known.size <= this.#maxListBytes) take(known);
        return known.size;
      }
    }
    const room = Math.max(this.#maxListBytes - before, isKept ? this.#limit : 0);
    let name: string | undefined;
    let nameLength: number;
    if (index === 0) {
      name = this.#string(room);
      nameLength = this.#stringLength;
    } else {
      name = this.#fieldAt(index).name;
      nameLength = name.length;
    }
    const value = this.#string(room - nameLength);
    const size = sizeOf(nameLength, this.#stringLength);
    if (name === undefined || value === undefined || size > room) {
      // RFC 7541, 4.4: a field that is larger than the table empties it.
      if (isKept && size > this.#limit) this.#evictFor(size);
      return size;
    }
    const field = fieldOf(name, value);
    if (isKept) this.#add(field);
    else if (mayBeKnown) this.#rememberText(field);
    if (before + size <= this.#maxListBytes) take(field);
    return size;
  }

  /** The field of this name whose text comes next, if it is known; otherwise nothing is read. */
  #knownText(name: string): Field | undefined {
    const begin = this.#at;
    const isHuffman = (this.#block[begin] ?? 0) >= 0x80;
    const length = this.#integer(0x7f);
    const from = this.#at;
    const to = from + length;
    const known =
      to > this.#end ? undefined : knownTexts.of(name, isHuffman, this.#block, from, to);
    this.#at = known === undefined ? begin : to;
    return known;
  }

  /** Remembers the field whose text was read last. */
  #rememberText(field: Field): void {
    knownTexts.add(field, this.#stringIsHuffman, this.#block, this.#stringFrom, this.#at);
  }

  #fieldAt(index: number): Field {
    if (index === 0) throw new HpackError("index 0");
    if (index <= STATIC_TABLE.length) return STATIC_TABLE[index - 1] as Field;
    const back = index - STATIC_TABLE.length - 1;
    if (back >= this.#count) throw new HpackError("an index beyond both tables");
    return this.#cells[(this.#newest - back) & (CELLS - 1)] as Field;
  }

  #add(field: Field): void {
    this.#evictFor(field.size);
    if (field.size > this.#limit) return;
    this.#newest = (this.#newest + 1) & (CELLS - 1);
    this.#cells[this.#newest] = field;
    this.#count++;
    this.#bytes += field.size;
    this.#tell(field.size + FIELD_BYTES);
  }

  /** Makes room for `size` bytes, if there is any in an empty table. */
  #evictFor(size: number): void {
    while (this.#count > 0 && this.#bytes + size > this.#limit) {
      const oldest = (this.#newest - this.#count + 1) & (CELLS - 1);
      const size = this.#cells[oldest]?.size ?? 0;
      this.#bytes -= size;
      this.#cells[oldest] = undefined;
      this.#count--;
      this.#tell(-size - FIELD_BYTES);
    }
  }

  #resize(limit: number): void {
    if (limit > TABLE_BYTES) throw new HpackError("a table larger than the settings allow");
    this.#limit = limit;
    this.#evictFor(0);
  }

  /** RFC 7541, 5.1, in a prefix of the bits of `mask`. */
  #integer(mask: number): number {
    let value = this.#octet() & mask;
    if (value < mask) return value;
    for (let shift = 0; shift <= 21; shift += 7) {
      const octet = this.#octet();
      value += (octet & 0x7f) << shift;
      if (octet < 0x80) return value;
    }
    throw new HpackError("an integer of more than 28 bits");
  }

  #octet(): number {
    if (this.#at >= this.#end) throw new HpackError("a block that ends too early");
    return this.#block[this.#at++] ?? 0;
  }

  /** How long the string is that was read last, whether or not it was made, and how it came. */
  #stringLength = 0;
  #stringFrom = 0;
  #stringIsHuffman = false;

  /** RFC 7541, 5.2. Undefined: it has more bytes than `room`, and only its length is told. */
  #string(room: number): string | undefined {
    const isHuffman = (this.#block[this.#at] ?? 0) >= 0x80;
    const length = this.#integer(0x7f);
    const from = this.#at;
    const to = from + length;
    if (to > this.#end) throw new HpackError("a string that ends beyond its block");
    this.#at = to;
    this.#stringFrom = from;
    this.#stringIsHuffman = isHuffman;
    if (length > MAX_STRING_BYTES) throw new HpackError("a string that no limit has room for");
    if (!isHuffman) {
      this.#stringLength = length;
      return length > room ? undefined : latin1(this.#block, from, to);
    }
    const end = decodeHuffman(this.#block, from, to, scratchFor(longestOf(length)), 0);
    if (end < 0) throw new HpackError("a string whose Huffman code is not right");
    this.#stringLength = end;
    return end > room ? undefined : latin1(scratch, 0, end);
  }
}

const EMPTY: Buffer = Buffer.alloc(0);
/** The names that `KnownTexts` is for, by their indexes in the static table: `:path` and `content-length`. */
const OFTEN_TEXT: ReadonlySet<number> = new Set([4, 5, 28]);
const knownTexts = new KnownTexts();
/** For the text of one string at a time, of all connections. */
let scratch: Buffer = Buffer.allocUnsafeSlow(4_096);

function scratchFor(bytes: number): Buffer {
  if (scratch.length < bytes) scratch = Buffer.allocUnsafeSlow(bytes);
  return scratch;
}

function latin1(bytes: Buffer, from: number, to: number): string {
  return bytes.toString("latin1", from, to);
}

/** Fields of `TABLE_BYTES` have their cells. */
if (TABLE_BYTES / MIN_FIELD_BYTES >= CELLS) throw new RangeError("too few cells for the table");
