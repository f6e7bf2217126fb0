/**
 * HPACK's Huffman code (RFC 7541, Appendix B).
 *
 * The code is canonical: codes of one length rise with their symbols, and longer codes go on where shorter ones end. So the
 * lengths say everything.
 */

/** Bits of the code of each byte, and of EOS (256). */
const LENGTHS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
  28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5,
  6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6,
  7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23,
  23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22,
  22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22,
  23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27,
  27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25,
  24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const EOS = 256;
/** Shortest code: a nibble ends one symbol at most. */
const SHORTEST = 5;
const LONGEST_PADDING = 7;

/**
 * What a nibble does in a state: the next state (bits 0 to 8), the symbol that it ends (bits 9 to 16), whether it ends one, and
 * whether it completes EOS, which no string may have.
 */
const ENDS = 1 << 17;
const FAILS = 1 << 18;
const STATES = 256;
const STEPS: Int32Array = new Int32Array(STATES * 16);
/** Whether a string may end in the state: what is left are fewer than eight bits, all of them ones. */
const MAY_END: Uint8Array = new Uint8Array(STATES);

/** At most this many bytes come out of `length` bytes of code. */
export function longestOf(length: number): number {
  return Math.floor((length * 8) / SHORTEST);
}

/**
 * Decodes `bytes[from … to)` into `into` at `at`, which has room for `longestOf(to - from)` bytes. Answers where the text ends;
 * -1: the code is not right, its padding is not, or EOS is in it (RFC 7541, 5.2).
 */
export function decodeHuffman(
  bytes: Uint8Array,
  from: number,
  to: number,
  into: Uint8Array,
  at: number,
): number {
  let state = 0;
  let end = at;
  for (let i = from; i < to; i++) {
    const byte = bytes[i] ?? 0;
    const high = STEPS[state * 16 + (byte >> 4)] ?? FAILS;
    if ((high & ENDS) !== 0) into[end++] = (high >> 9) & 0xff;
    const low = STEPS[(high & 0x1ff) * 16 + (byte & 15)] ?? FAILS;
    if ((low & ENDS) !== 0) into[end++] = (low >> 9) & 0xff;
    if (((high | low) & FAILS) !== 0) return -1;
    state = low & 0x1ff;
  }
  return MAY_END[state] === 1 ? end : -1;
}

interface Node {
  /** Number of an inner node; -1: a leaf. */
  readonly state: number;
  readonly symbol: number;
  readonly next: [Node | undefined, Node | undefined];
}

function build(): void {
  let states = 0;
  const inner = (): Node => ({ state: states++, symbol: -1, next: [undefined, undefined] });
  const root = inner();
  const nodes = [root];
  const order = LENGTHS.map((length, symbol) => ({ length, symbol })).toSorted(
    (a, b) => a.length - b.length || a.symbol - b.symbol,
  );
  let code = 0;
  let bits = SHORTEST;
  for (const { length, symbol } of order) {
    code *= 2 ** (length - bits);
    bits = length;
    let node = root;
    for (let bit = length - 1; bit >= 0; bit--) {
      const side = Math.floor(code / 2 ** bit) % 2 === 0 ? 0 : 1;
      if (bit === 0) node.next[side] = { state: -1, symbol, next: [undefined, undefined] };
      else if (node.next[side] === undefined) nodes.push((node.next[side] = inner()));
      node = node.next[side];
    }
    code++;
  }
  for (const node of nodes) for (let nibble = 0; nibble < 16; nibble++) step(root, node, nibble);
  let padding: Node | undefined = root;
  for (let bits = 0; bits <= LONGEST_PADDING && padding !== undefined; bits++) {
    if (padding.state >= 0) MAY_END[padding.state] = 1;
    padding = padding.next[1];
  }
}

function step(root: Node, from: Node, nibble: number): void {
  let node = from;
  let flags = 0;
  for (let bit = 3; bit >= 0; bit--) {
    node = node.next[((nibble >> bit) & 1) as 0 | 1] as Node;
    if (node.state >= 0) continue;
    flags |= node.symbol === EOS ? FAILS : ENDS | (node.symbol << 9);
    node = root;
  }
  STEPS[from.state * 16 + nibble] = flags | node.state;
}

build();
