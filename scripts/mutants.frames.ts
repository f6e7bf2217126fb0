import type { Mutant } from "./mutant.ts";

const http2 = "packages/server/src/fast/http2";
const calls = "packages/server/src/fast/calls";
const unit = "packages/server/test/fast";
const rules = [`${unit}/connection.test.ts`];
const hpack = [`${unit}/hpack.test.ts`];
const deadlines = [`${unit}/calls/deadlines.test.ts`];
const tooOld = [`${unit}/calls/too-old.test.ts`];
const inFlight = ["packages/server/test/doors/in-flight.e2e.test.ts"];
const doors = ["packages/server/test/doors/malformed.e2e.test.ts"];

/** Faults at the edges of frames, windows and tables, and where the doors of gRPC must answer the same. */
export const frameMutants: readonly Mutant[] = [
  {
    name: "frames: the connection's window does not bound what is sent at once",
    file: `${http2}/sender.ts`,
    find: ` && length <= this.#window && length <= MAX_FRAME_BYTES;`,
    replace: ` && length <= MAX_FRAME_BYTES;`,
    tests: rules,
  },
  {
    name: "frames: HPACK's table forgets a field when it is exactly full",
    file: `${http2}/hpack/decoder.ts`,
    find: `this.#bytes + size > this.#limit`,
    replace: `this.#bytes + size >= this.#limit`,
    tests: hpack,
  },
  {
    name: "frames: HPACK's table has no room for a field of its size",
    file: `${http2}/hpack/decoder.ts`,
    find: `    if (field.size > this.#limit) return;`,
    replace: `    if (field.size >= this.#limit) return;`,
    tests: hpack,
  },
  {
    name: "frames: a peer is told of twice a connection's window",
    file: `${http2}/receive-window.ts`,
    find: `CONNECTION_WINDOW - FIRST_WINDOW`,
    replace: `2 * CONNECTION_WINDOW - FIRST_WINDOW`,
    tests: rules,
  },
  {
    name: "frames: a connection's window grows each time it is given back",
    file: `${http2}/receive-window.ts`,
    find: `this.#out.number(FRAME.WINDOW_UPDATE, 0, this.#taken);`,
    replace: `this.#out.number(FRAME.WINDOW_UPDATE, 0, 2 * this.#taken);`,
    tests: rules,
  },
  {
    name: "frames: a stream's window has twice its size",
    file: `${http2}/requests.ts`,
    find: `stream.begin(id, this.#its.peer.initialWindow, FIRST_WINDOW);`,
    replace: `stream.begin(id, this.#its.peer.initialWindow, 2 * FIRST_WINDOW);`,
    tests: rules,
  },
  {
    name: "frames: a stream's window grows each time it is given back",
    file: `${http2}/receive-window.ts`,
    find: `    stream.receiveWindow += stream.unacknowledged;`,
    replace: `    stream.receiveWindow += 2 * stream.unacknowledged;`,
    tests: rules,
  },
  {
    name: "frames: the reserved bit is one of a stream's number",
    file: `${http2}/frame-reader.ts`,
    find: `bytes.readUInt32BE(at + 5) & MAX_WINDOW`,
    replace: `bytes.readUInt32BE(at + 5)`,
    tests: rules,
  },
  {
    name: "frames: the reserved bit is one of a window's size",
    file: `${http2}/requests.ts`,
    find: `const more = bytes.readUInt32BE(from) & MAX_WINDOW;`,
    replace: `const more = bytes.readUInt32BE(from);`,
    tests: rules,
  },
  {
    name: "frames: a deadline of the tick that ends a long stop never comes",
    file: `${calls}/deadlines.ts`,
    find: "filter((tick) => tick <= now)",
    replace: "filter((tick) => tick < now)",
    tests: deadlines,
  },
  {
    name: "frames: what a long stop is depends on nothing that waits",
    file: `${calls}/deadlines.ts`,
    find: "    if (!isLong) for (let tick = this.#next; tick <= now; tick++) due.push(tick);",
    replace: "    if (!isLong) for (let tick = this.#next; tick < now; tick++) due.push(tick);",
    tests: deadlines,
  },
  {
    name: "frames: the place of a handler that throws is lost",
    file: `${calls}/unary-call.ts`,
    find: "      if (!this.#isOver) this.#refuse(thrown, trace);\n",
    replace: "      if (!this.#isOver) return this.#refuse(thrown, trace);\n",
    tests: tooOld,
  },
  {
    name: "frames: a handler that throws is in flight for ever",
    file: `${calls}/unary-call.ts`,
    find: "    inFlight.ended();\n",
    replace: "    if (!this.#isOver) inFlight.ended();\n",
    tests: tooOld,
  },
  {
    name: "frames: a stream's request that throws is in flight for ever",
    file: `${calls}/stream-call.ts`,
    find: "    await answer.catch(() => undefined);\n    inFlight.ended();",
    replace: "    await answer;\n    inFlight.ended();",
    tests: tooOld,
  },
  {
    name: "frames: a Host beside another authority is taken",
    file: "packages/server/src/fast/http2/head.ts",
    find: "    else if (!isSameHost(this.#authority, this.#host))",
    replace: "    else if (this.#host === this.path)",
    tests: doors,
  },
  {
    name: "frames: grpc-js: a Host beside another authority is taken",
    file: "packages/server/src/grpc/sessions.ts",
    find: "        if (!isOneHost(headers)) {",
    replace: "        if (!isOneHost({})) {",
    tests: doors,
  },
  {
    name: "frames: grpc-js: a time of a month is over at once",
    file: "packages/server/src/grpc/sessions.ts",
    find: "        boundTimeout(headers);\n",
    replace: "",
    tests: ["packages/server/test/doors/deadlines.e2e.test.ts"],
    only: "of a month",
  },
  {
    name: "frames: what is to wait for a month does not wait",
    file: "packages/server/src/timers.ts",
    find: "Math.min(delayMs, LONGEST_MS)",
    replace: "delayMs",
    tests: ["packages/server/test/doors/deadlines.e2e.test.ts"],
    only: "of a month",
  },
  {
    name: "frames: in flight: a handler that throws is never over, over grpc-js",
    file: "packages/server/src/grpc/door.ts",
    find: "    await answer.catch(() => undefined);\n",
    replace: "    if (await answer.then(() => false, () => true)) return;\n",
    tests: inFlight,
  },
  {
    name: "frames: in flight: a refusal over HTTP is never over",
    file: "packages/server/src/http/door.ts",
    find: "      this.#inFlight.ended();\n",
    replace: "      if (response.statusCode < 300) this.#inFlight.ended();\n",
    tests: inFlight,
  },
];
