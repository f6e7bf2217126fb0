import type { Mutant } from "./mutant.ts";

const calls = "packages/server/src/fast/calls";
const secure = "packages/server/src/tls/secure-sockets.ts";
const unit = "packages/server/test/fast/calls";
const deframer = [`${unit}/deframer.test.ts`];
const grpc = [`${unit}/grpc.test.ts`];
const wire = ["packages/server/test/fast/calls.e2e.test.ts"];
const tls = ["packages/server/test/fast/tls.e2e.test.ts"];

/** Faults of gRPC and TLS in the fast door. */
export const fastCallMutants: readonly Mutant[] = [
  {
    name: "fast calls: a message may have any length",
    file: `${calls}/deframer.ts`,
    find: '    if (length > MAX_MESSAGE_BYTES) return "too large";\n',
    replace: "",
    tests: deframer,
  },
  {
    name: "fast calls: any flag is one",
    file: `${calls}/deframer.ts`,
    find: '    if (flag > 1) return "flag";\n',
    replace: "",
    tests: deframer,
  },
  {
    name: "fast calls: what is not wanted yet is lost",
    file: `${calls}/deframer.ts`,
    find: "    else if (at > 0) kept.copyWithin(0, at, at + this.#end);",
    replace: "",
    tests: deframer,
  },
  {
    name: "fast calls: a few bytes become as many as they like",
    file: `${calls}/encoding.ts`,
    find: "{ maxOutputLength: MAX_MESSAGE_BYTES }",
    replace: "{}",
    tests: deframer,
  },
  {
    name: "fast calls: what calls kept is never forgotten",
    file: `${calls}/incoming.ts`,
    find: "    this.#its.partialBytes -= this.#deframer.kept;\n",
    replace: "",
    tests: [`${unit}/incoming.test.ts`],
  },
  {
    name: "fast calls: a timeout may have nine digits",
    file: `${calls}/grpc.ts`,
    find: "const MAX_DIGITS = 8;",
    replace: "const MAX_DIGITS = 9;",
    tests: grpc,
  },
  {
    name: "fast calls: a percent sign in a message stands for itself",
    file: `${calls}/grpc.ts`,
    find: "/[^ -$&-~]+/gu",
    replace: "/[^ -~]+/gu",
    tests: grpc,
  },
  {
    name: "fast calls: a deadline comes early",
    file: `${calls}/deadlines.ts`,
    find: "Math.ceil(deadline / TICK_MS)",
    replace: "Math.floor(deadline / TICK_MS)",
    tests: [`${unit}/deadlines.test.ts`],
  },
  {
    name: "fast calls: the second message of a call is left out",
    file: `${calls}/one-message.ts`,
    find: "    if (count > 1) return",
    replace: "    if (count > 2) return",
    tests: wire,
    only: "two messages",
  },
  {
    name: "fast calls: half a message behind a whole one is left out",
    file: `${calls}/one-message.ts`,
    find: "    if (!this.#incoming.isEmpty) return",
    replace: "    if (count === 0 && !this.#incoming.isEmpty) return",
    tests: wire,
    only: "message and a half",
  },
  {
    name: "fast calls: requests are taken from a caller that takes no answers",
    file: `${calls}/stream-call.ts`,
    find: "    return !this.#stream.isPaused;",
    replace: "    return true;",
    tests: wire,
    only: "takes no answers",
  },
  {
    name: "fast calls: what was kept is not read when the caller takes answers again",
    file: `${calls}/stream-call.ts`,
    find: "        this.#readOn();\n",
    replace: "",
    tests: wire,
    only: "takes no answers",
  },
  {
    name: "fast calls: streams have no deadline",
    file: `${calls}/stream-call.ts`,
    find: '    if (head.timeout !== "") this.#tick =',
    replace: '    if (head.timeout === "-") this.#tick =',
    tests: wire,
    only: "a stream ends at its deadline",
  },
  {
    name: "fast calls: a handler that takes too long has no deadline",
    file: `${calls}/unary-call.ts`,
    find: "    this.#refuse(over, this.#trace);\n",
    replace: "",
    tests: wire,
    only: "takes too long",
  },
  {
    name: "fast calls: the head around a status does not count",
    file: `${calls}/answers.ts`,
    find: "const HEAD_BYTES = 102;",
    replace: "const HEAD_BYTES = 0;",
    tests: wire,
    only: "percent-encoded",
  },
  {
    name: "fast calls: any content type is gRPC's",
    file: `${calls}/grpc.ts`,
    find: 'rest === "" ||',
    replace: "true ||",
    tests: wire,
    only: "none of gRPC",
  },
  {
    name: "fast TLS: ALPN is not needed",
    file: secure,
    find: "      if (socket.alpnProtocol === ALPN) {",
    replace: "      if (socket.alpnProtocol === ALPN || !socket.alpnProtocol) {",
    tests: tls,
  },
  {
    name: "fast TLS: strangers are taken",
    file: secure,
    find: "rejectUnauthorized: true",
    replace: "rejectUnauthorized: false",
    tests: tls,
  },
  {
    name: "fast TLS: TLS 1.2 is spoken",
    file: secure,
    find: ' minVersion: "TLSv1.3",',
    replace: "",
    tests: tls,
  },
  {
    name: "fast calls: answers are made before they are written",
    file: `${calls}/unary-call.ts`,
    find: "const bytes = size < 0 ? response.encode(message) : undefined;",
    replace: "const bytes = size < 1e9 ? response.encode(message) : undefined;",
    tests: ["packages/server/test/fast/heap.e2e.test.ts"],
  },
  {
    name: "fast calls: known requests are compared by their beginning",
    file: "packages/server/src/api/codec/known-requests.ts",
    find: "  if (known.length !== to - from) return false;\n",
    replace: "",
    tests: ["packages/server/test/api/codec.test.ts"],
  },
];
