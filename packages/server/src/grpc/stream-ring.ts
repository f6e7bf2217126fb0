/** Cells of a fresh ring: a connection with a few calls in flight never grows it. */
const MIN_CELLS = 64;
/** Cells of the largest ring, about 100 KB; streams beyond it are kept in a Map. A power of two, as is MIN_CELLS. */
const MAX_CELLS = 8_192;

/**
 * What node:http2 keeps its open streams in, without a hash table: a ring in which a stream's place is its number.
 *
 * Streams of one side are numbered 1, 3, 5 … and most live shortly, so `number / 2` modulo the cells is free again long
 * before it is wanted again. A stream that is still there by then is a long one, or there are very many: the ring grows
 * while it is half full, and otherwise the older stream moves to a Map. So each stream enters that Map at most once, and
 * short streams do not enter it at all: nothing there is filled and emptied at the rate of calls.
 *
 * INVARIANT: a stream is in exactly one place: in the cell of its number, or in the Map.
 *
 * It has every method of a Map with numbers for keys, and the same results, except for the order of iteration: by
 * number, which is the order of arrival unless a peer breaks the protocol. As in a Map, what is removed while it is
 * iterated over is not visited; what is added meanwhile may be missed.
 */
export class StreamRing<Stream extends object> {
  #numbers = new Int32Array(MIN_CELLS);
  #streams: (Stream | undefined)[] = emptyCells<Stream>(MIN_CELLS);
  #mask = MIN_CELLS - 1;
  #inRing = 0;
  readonly #others = new Map<number, Stream>();

  get size(): number {
    return this.#inRing + this.#others.size;
  }

  get(number: number): Stream | undefined {
    const cell = (number >>> 1) & this.#mask;
    if (this.#numbers[cell] === number) {
      const stream = this.#streams[cell];
      if (stream !== undefined) return stream;
    }
    return this.#others.size === 0 ? undefined : this.#others.get(number);
  }

  has(number: number): boolean {
    return this.get(number) !== undefined;
  }

  set(number: number, stream: Stream): this {
    // Numbers that a 32-bit cell does not hold are not those of streams; a Map takes them as it takes anything.
    if (number !== (number | 0)) {
      this.#others.set(number, stream);
      return this;
    }
    let cell = (number >>> 1) & this.#mask;
    let older = this.#streams[cell];
    if (older !== undefined && this.#numbers[cell] !== number && this.#grow()) {
      cell = (number >>> 1) & this.#mask;
      older = this.#streams[cell];
    }
    if (older === undefined) {
      this.#inRing++;
    } else if (this.#numbers[cell] !== number) {
      this.#others.set(this.#numbers[cell] ?? 0, older);
    }
    if (this.#others.size > 0) this.#others.delete(number);
    this.#numbers[cell] = number;
    this.#streams[cell] = stream;
    return this;
  }

  delete(number: number): boolean {
    const cell = (number >>> 1) & this.#mask;
    if (this.#numbers[cell] === number && this.#streams[cell] !== undefined) {
      this.#streams[cell] = undefined;
      this.#inRing--;
      return true;
    }
    return this.#others.size > 0 && this.#others.delete(number);
  }

  clear(): void {
    this.#streams.fill(undefined);
    this.#others.clear();
    this.#inRing = 0;
  }

  forEach(
    visit: (stream: Stream, number: number, ring: StreamRing<Stream>) => void,
    self?: unknown,
  ): void {
    for (const [number, stream] of this.entries()) visit.call(self, stream, number, this);
  }

  *entries(): Generator<[number, Stream], undefined, undefined> {
    for (const number of this.#sortedNumbers()) {
      const stream = this.get(number);
      if (stream !== undefined) yield [number, stream];
    }
    return undefined;
  }

  *keys(): Generator<number, undefined, undefined> {
    for (const [number] of this.entries()) yield number;
    return undefined;
  }

  *values(): Generator<Stream, undefined, undefined> {
    for (const [, stream] of this.entries()) yield stream;
    return undefined;
  }

  [Symbol.iterator](): Generator<[number, Stream], undefined, undefined> {
    return this.entries();
  }

  get [Symbol.toStringTag](): string {
    return "StreamRing";
  }

  #sortedNumbers(): number[] {
    const numbers = [...this.#others.keys()];
    for (const [cell, stream] of this.#streams.entries()) {
      if (stream !== undefined) numbers.push(this.#numbers[cell] ?? 0);
    }
    return numbers.toSorted((a, b) => a - b);
  }

  /** Twice the cells, while at least half of them are taken. Neighbours in the old ring never meet in the new one. */
  #grow(): boolean {
    const cells = this.#streams.length;
    if (cells >= MAX_CELLS || this.#inRing * 2 < cells) return false;
    const streams = this.#streams;
    const numbers = this.#numbers;
    this.#streams = emptyCells(cells * 2);
    this.#numbers = new Int32Array(cells * 2);
    this.#mask = cells * 2 - 1;
    for (const [old, stream] of streams.entries()) {
      if (stream === undefined) continue;
      const number = numbers[old] ?? 0;
      const cell = (number >>> 1) & this.#mask;
      this.#numbers[cell] = number;
      this.#streams[cell] = stream;
    }
    return true;
  }
}

/**
 * What node:http2 keeps streams in until they have a number. On a server that is one at a time, within one turn: so one
 * field is enough, and the Set behind it is for whatever else may come.
 */
export class PendingStreams<Stream extends object> {
  #only: Stream | undefined;
  readonly #others = new Set<Stream>();

  get size(): number {
    return this.#others.size + (this.#only === undefined ? 0 : 1);
  }

  has(stream: Stream): boolean {
    return stream === this.#only || this.#others.has(stream);
  }

  add(stream: Stream): this {
    if (this.has(stream)) return this;
    if (this.#only === undefined) this.#only = stream;
    else this.#others.add(stream);
    return this;
  }

  delete(stream: Stream): boolean {
    if (stream !== this.#only) return this.#others.delete(stream);
    this.#only = undefined;
    return true;
  }

  clear(): void {
    this.#only = undefined;
    this.#others.clear();
  }

  forEach(
    visit: (stream: Stream, same: Stream, set: PendingStreams<Stream>) => void,
    self?: unknown,
  ): void {
    for (const stream of this.values()) visit.call(self, stream, stream, this);
  }

  *values(): Generator<Stream, undefined, undefined> {
    if (this.#only !== undefined) yield this.#only;
    yield* this.#others;
    return undefined;
  }

  keys(): Generator<Stream, undefined, undefined> {
    return this.values();
  }

  *entries(): Generator<[Stream, Stream], undefined, undefined> {
    for (const stream of this.values()) yield [stream, stream];
    return undefined;
  }

  [Symbol.iterator](): Generator<Stream, undefined, undefined> {
    return this.values();
  }

  get [Symbol.toStringTag](): string {
    return "PendingStreams";
  }
}

function emptyCells<Stream>(count: number): (Stream | undefined)[] {
  // Filled, so that the array has no holes and stays fast.
  return Array.from({ length: count }, () => undefined);
}
