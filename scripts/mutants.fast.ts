import type { Mutant } from "./mutant.ts";

const http2 = "packages/server/src/fast/http2";
const tests = "packages/server/test/fast";
const rules = [`${tests}/connection.test.ts`];
const model = [`${tests}/connection.model.test.ts`];
const hpack = [`${tests}/hpack.test.ts`];
const encoder = [`${tests}/hpack.model.test.ts`];
const texts = [`${tests}/known-texts.model.test.ts`];
const table = [`${tests}/stream-table.model.test.ts`];
const node = [`${tests}/node-http2.test.ts`];
const slices = [`${tests}/slices.e2e.test.ts`];
const lifetime = [`${tests}/lifetime.test.ts`];
const memory = [`${tests}/short-memory.test.ts`];
const connection = "packages/server/src/fast/fast-connection.ts";

/** Faults of the fast door: frames, header blocks, windows, limits, the time of a connection. */
export const fastMutants: readonly Mutant[] = [
  {
    name: "fast: a frame that a chunk cuts loses its last byte",
    file: `${http2}/frame-reader.ts`,
    find: `const end = Math.min(chunk.length, at + total - this.#length);`,
    replace: `const end = Math.min(chunk.length, at + total - this.#length - 1);`,
    tests: rules,
  },
  {
    name: "fast: a frame may be of any length",
    file: `${http2}/frame-reader.ts`,
    find: `if (length > MAX_FRAME_BYTES) {`,
    replace: `if (length > 2 * MAX_FRAME_BYTES) {`,
    tests: rules,
  },
  {
    name: "fast: a reset frees the slot of a handler that works",
    file: `${http2}/requests.ts`,
    find: `    if (stream.user === undefined) this.#its.streams.free(stream);
    else stream.user.aborted();
    this.#its.closed();`,
    replace: `    this.#its.streams.free(stream);
    stream.user?.aborted();
    this.#its.closed();`,
    tests: rules,
  },
  {
    name: "fast: the headers of a refused stream are not decoded",
    file: `${http2}/requests.ts`,
    find: `const size = this.#hpack.decode(bytes, from, to, head.take);`,
    replace: `const size =
      streams.slots >= this.#its.limits.streams
        ? 0
        : this.#hpack.decode(bytes, from, to, head.take);`,
    tests: rules,
  },
  {
    name: "fast: discarded DATA does not count for the connection",
    file: `${http2}/requests.ts`,
    find: `    this.#its.window.take(to - from);
    const padding`,
    replace: `    if (this.#its.streams.get(id) !== undefined) this.#its.window.take(to - from);
    const padding`,
    tests: rules,
  },
  {
    name: "fast: padding does not count for the window of a stream",
    file: `${http2}/requests.ts`,
    find: `stream.receiveWindow -= to - from;`,
    replace: `stream.receiveWindow -= 0;`,
    tests: rules,
  },
  {
    name: "fast: our own resets are not counted",
    file: `${http2}/requests.ts`,
    find: `if (code !== CODE.NO_ERROR && this.#its.guard.reset()) return;`,
    replace: ``,
    tests: rules,
  },
  {
    name: "fast: a header block may have as many frames as it likes",
    file: `${http2}/header-block.ts`,
    find: ` || this.#parts.length > headerBlockFrames`,
    replace: ``,
    tests: rules,
  },
  {
    name: "fast: SETTINGS move no window of an open stream",
    file: `${http2}/connection.ts`,
    find: `        stream.sendWindow += change;`,
    replace: `        stream.sendWindow += 0 * change;`,
    tests: rules,
  },
  {
    name: "fast: a window of 0 lets an answer out",
    file: `${http2}/sender.ts`,
    find: `length <= stream.sendWindow && length <= this.#window`,
    replace: `length <= this.#window`,
    tests: rules,
  },
  {
    name: "fast: the connection's window goes to the first stream that waits",
    file: `${http2}/sender.ts`,
    find: `      if (stream.waitingBytes > 0) this.#blocked.add(stream);
      else this.#after(stream);`,
    replace: `      while (this.#sendOne(stream));
      if (stream.waitingBytes > 0) this.#blocked.add(stream);
      else this.#after(stream);`,
    tests: rules,
  },
  {
    name: "fast: what waits stays counted when its stream is closed",
    file: `${http2}/sender.ts`,
    find: `    this.#held.add(-stream.waitingBytes - stream.waiting.length * STREAM_BYTES);`,
    replace: ``,
    tests: model,
  },
  {
    name: "fast: requests that are not whole are not counted",
    file: `${http2}/requests.ts`,
    find: `else this.#its.held.add((stream.headBytes = size + STREAM_BYTES));`,
    replace: ``,
    tests: memory,
  },
  {
    name: "fast: a request that is whole stays counted",
    file: `${http2}/requests.ts`,
    find: `    this.#its.held.add(-stream.headBytes);`,
    replace: `    if (stream.id < 0) this.#its.held.add(-stream.headBytes);`,
    tests: memory,
  },
  {
    name: "fast: a stream that waits for its next use keeps its head",
    file: `${http2}/streams.ts`,
    find: `    stream.head.clear();`,
    replace: `    if (this.#free.length > 0) stream.head.clear();`,
    tests: memory,
  },
  {
    name: "fast: an answer that waits counts as its bytes only",
    file: `${http2}/sender.ts`,
    find: `    this.#held.add(bytes.length + STREAM_BYTES);`,
    replace: `    this.#held.add(bytes.length);`,
    tests: memory,
  },
  {
    name: "fast: an answer that was sent stays counted as a stream",
    file: `${http2}/sender.ts`,
    find: `    this.#held.add(-STREAM_BYTES);`,
    replace: ``,
    tests: memory,
  },
  {
    name: "fast: memory is never short",
    file: `${http2}/limits.ts`,
    find: `return this.isShort ? LITTLE : limit;`,
    replace: `return limit;`,
    tests: memory,
  },
  {
    name: "fast: who takes no answers is kept, however short memory is",
    file: connection,
    find: `const isStalled = this.#stalls >= MAX_STALLS;`,
    replace: `const isStalled = this.#stalls >= 100 * MAX_STALLS;`,
    tests: memory,
  },
  {
    name: "fast: who takes answers slowly is ended",
    file: connection,
    find: `      this.#stalls = 0;`,
    replace: ``,
    tests: memory,
  },
  {
    name: "fast: what waits for its turn is not counted",
    file: connection,
    find: `    this.#held.lend(lent - this.#lent);`,
    replace: ``,
    tests: memory,
  },
  {
    name: "fast: each connection has a whole slice, however many there are",
    file: connection,
    find: `SLICE_BYTES / Math.max(1, this.#turn.waiting / WHOLE_SLICES)`,
    replace: `SLICE_BYTES`,
    tests: memory,
  },
  {
    name: "fast: a table that became small is still named",
    file: `${http2}/response-heads.ts`,
    find: `return !this.#peer.hasSmallTable;`,
    replace: `return true;`,
    tests: node,
  },
  {
    name: "fast: a small table is not told to its peer",
    file: `${http2}/response-heads.ts`,
    find: `Uint8Array.from([...NO_TABLE, ...block])`,
    replace: `block`,
    tests: rules,
  },
  {
    name: "fast: each answer takes a slab while the socket takes nothing",
    file: `${http2}/out.ts`,
    find: `    if (this.#queued === 0) this.handOver();`,
    replace: `    this.handOver();`,
    tests: rules,
  },
  {
    name: "fast: GOAWAY names no last stream first",
    file: `${http2}/connection.ts`,
    find: `this.#out.goAway(MAX_WINDOW, CODE.NO_ERROR, "");`,
    replace: `this.#tellLast();`,
    tests: rules,
  },
  {
    name: "fast: what is left of a large chunk is not read",
    file: "packages/server/src/fast/fast-connection.ts",
    find: `if (isLarge) this.#keepRest(chunk.subarray(slice));`,
    replace: `if (isLarge) this.#keepRest(chunk.subarray(2 * slice));`,
    tests: slices,
  },
  {
    name: "fast: who resets streams without end is read on",
    file: `${http2}/guard.ts`,
    find: `this.#isCounting = waitMs > 0;`,
    replace: `this.#isCounting = false;
    if (waitMs < 1e9) return 0;`,
    tests: rules,
  },
  {
    name: "fast: nobody asks a silent peer",
    file: `${http2}/lifetime.ts`,
    find: `return "ping";`,
    replace: `return "nothing";`,
    tests: lifetime,
  },
  {
    name: "fast: calls of a connection that is too old are cut off without a word",
    file: `${http2}/lifetime.ts`,
    find: `if (now - this.#callsEndedAt >= LAST_WORDS_MS) return "give up";`,
    replace: `return "give up";`,
    tests: lifetime,
  },
  {
    name: "fast: a connection that is too old waits for its calls for ever",
    file: `${http2}/lifetime.ts`,
    find: `if (now - this.#callsEndedAt >= LAST_WORDS_MS) return "give up";`,
    replace: ``,
    tests: lifetime,
  },
  {
    name: "fast: settings need no acknowledgement",
    file: `${http2}/lifetime.ts`,
    find: `if (!this.#isSettled && now - this.#bornAt >= SETTINGS_TIMEOUT_MS) return "give up";`,
    replace: ``,
    tests: lifetime,
  },
  {
    name: "fast: HPACK's table forgets nothing",
    file: `${http2}/hpack/decoder.ts`,
    find: `while (this.#count > 0 && this.#bytes + size > this.#limit) {`,
    replace: `while (this.#count > 100 && this.#bytes + size > this.#limit) {`,
    tests: hpack,
  },
  {
    name: "fast: a large field does not empty HPACK's table when nobody reads it",
    file: `${http2}/hpack/decoder.ts`,
    find: `if (isKept && size > this.#limit) this.#evictFor(size);`,
    replace: ``,
    tests: hpack,
  },
  {
    name: "fast: HPACK's integers lose what is in their second octet",
    file: `${http2}/hpack/decoder.ts`,
    find: `value += (octet & 0x7f) << shift;`,
    replace: `value += (octet & 0x7f) << Math.min(shift, 0);`,
    tests: encoder,
  },
  {
    name: "fast: Huffman's padding may be anything",
    file: `${http2}/hpack/huffman.ts`,
    find: `return MAY_END[state] === 1 ? end : -1;`,
    replace: `return end;`,
    tests: hpack,
  },
  {
    name: "fast: a known text is any field's",
    file: `${http2}/hpack/known-texts.ts`,
    find: `      known.field.name === name &&\n`,
    replace: ``,
    tests: texts,
  },
  {
    name: "fast: Huffman's code of a text is the text",
    file: `${http2}/hpack/known-texts.ts`,
    find: `      known.isHuffman === isHuffman &&\n`,
    replace: ``,
    tests: texts,
  },
  {
    name: "fast: a known text is taken beyond the limit",
    file: `${http2}/hpack/decoder.ts`,
    find: `if (before + known.size <= this.#maxListBytes) take(known);`,
    replace: `take(known);`,
    tests: texts,
  },
  {
    name: "fast: a stream that closes hides others",
    file: `${http2}/stream-table.ts`,
    find: `      cells[gap] = next;\n      gap = at;\n`,
    replace: ``,
    tests: table,
  },
  {
    name: "fast: a stream moves up past its own cell",
    file: `${http2}/stream-table.ts`,
    find: `if (((at - cellOf(next.id)) & mask) < ((at - gap) & mask)) continue;`,
    replace: ``,
    tests: table,
  },
];
