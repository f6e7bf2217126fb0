// Messages that no client would send, over every RPC there is: each call ends with an error that says something, and the
// server goes on. IDMINT_LONG=1 sends 100,000 of them.
import { type ClientHttp2Session, connect, constants } from "node:http2";
import * as api from "@idmint/proto";
import * as health from "@idmint/proto/health";
import * as reflection from "@idmint/proto/reflection";
import { CODE_OF_REASON } from "@idmint/core";
import { status } from "@grpc/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import { call, createTag, generateId, startTest } from "../support.ts";

const MESSAGES = process.env["IDMINT_LONG"] === "1" ? 100_000 : 3_000;
const AT_ONCE = 50;
const GIVE_UP_MS = 300_000;
/** Of HTTP: the call was not one of gRPC. */
const UNSUPPORTED_MEDIA_TYPE = 415;

interface Method {
  readonly path: string;
  readonly requestStream: boolean;
}

/** Every method that a server has, those of services to come included. */
const methods: readonly Method[] = [api, health, reflection].flatMap((module) =>
  Object.entries(module)
    .filter(([name]) => name.endsWith("Service") || name.endsWith("ServiceV1Alpha"))
    .flatMap(([, service]) => Object.values(service as Record<string, Method>)),
);

/** Numbers from a seed that is printed when the test fails: IDMINT_SEED=… repeats a run. */
const seed = Number(process.env["IDMINT_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
let state = seed;
function below(limit: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
  return Math.floor(((state >>> 0) / 2 ** 32) * limit);
}
const pick = <T>(of: readonly T[]): T => of[below(of.length)] as T;

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return Buffer.from([...bytes, Number(rest)]);
}

const NUMBERS = [0n, 1n, 2n, 127n, 10_000n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 53n, 2n ** 63n, -1n];
const TEXTS = [
  "orders",
  "",
  "a",
  "ghost",
  "x".repeat(128),
  "x".repeat(2_000),
  "\u0000",
  "é漢😀",
  "../..",
];

/** A message that could be one: fields of any number and type, some of them messages. */
function plausible(depth: number): Buffer {
  const fields = Array.from({ length: below(6) }, () => {
    const number = BigInt(pick([1, 1, 2, 2, 3, 4, 5, 6, 7, 9, 15, 16, 100]));
    const type = pick([0, 0, 1, 2, 2, 2, 5]);
    const key = varint((number << 3n) | BigInt(type));
    if (type === 0) return Buffer.concat([key, varint(pick(NUMBERS))]);
    if (type === 1) return Buffer.concat([key, Buffer.alloc(8, below(256))]);
    if (type === 5) return Buffer.concat([key, Buffer.alloc(4, below(256))]);
    const body = depth > 0 && below(2) === 0 ? plausible(depth - 1) : Buffer.from(pick(TEXTS));
    return Buffer.concat([key, varint(BigInt(body.length)), body]);
  });
  return Buffer.concat(fields);
}

/** One that decodes in most methods: the first field is a tag's name, or a message that has one. */
function usual(): Buffer {
  const name = Buffer.concat([Buffer.from([0x0a, 6]), Buffer.from("orders")]);
  return below(2) === 0
    ? Buffer.concat([name, Buffer.from([0x10]), varint(pick(NUMBERS))])
    : Buffer.concat([Buffer.from([0x0a, name.length]), name]);
}

const MUTATIONS: Readonly<Record<string, (message: Buffer) => Buffer>> = {
  none: (message) => message,
  "bits flipped": (message) => {
    const bytes = Buffer.from(message);
    for (let flips = 1 + below(4); flips > 0 && bytes.length > 0; flips--) {
      const at = below(bytes.length);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << below(8));
    }
    return bytes;
  },
  truncated: (message) => message.subarray(0, below(message.length + 1)),
  "wrong wire types": (message) => {
    const bytes = Buffer.from(message);
    if (bytes.length > 0) bytes[0] = ((bytes[0] ?? 0) & 0xf8) | below(8);
    return bytes;
  },
  "huge length": (message) =>
    Buffer.concat([Buffer.from([0x0a]), varint(pick([2n ** 31n, 2n ** 32n, 2n ** 63n])), message]),
  "endless varint": (message) => Buffer.concat([message, Buffer.alloc(20, 0xff)]),
  "deep nesting": (message) => {
    let bytes = message;
    for (let depth = 0; depth < 500 && bytes.length < 8_000; depth++) {
      bytes = Buffer.concat([Buffer.from([0x0a]), varint(BigInt(bytes.length)), bytes]);
    }
    return bytes;
  },
  "deep groups": () => Buffer.alloc(8_000, 0x0b),
  "invalid UTF-8": (message) =>
    Buffer.concat([message, Buffer.from([0x0a, 4, 0xc3, 0x28, 0xed, 0xa0])]),
  "fields twice": (message) => Buffer.concat([message, message, message]),
  noise: () => Buffer.from(Array.from({ length: below(300) }, () => below(256))),
  "too large": () => Buffer.alloc(17 * 1_024, 0x0a),
};

/** A message in its frame, and what is said of it; most are framed as they should be. */
const FRAMES: Readonly<Record<string, (message: Buffer) => { bytes: Buffer; headers?: object }>> = {
  right: (message) => ({ bytes: frame(0, message.length, message) }),
  "length too large": (message) => ({ bytes: frame(0, message.length + 1 + below(1e6), message) }),
  "length too small": (message) => ({ bytes: frame(0, below(message.length + 1), message) }),
  "length of 4 GiB": (message) => ({ bytes: frame(0, 2 ** 32 - 1, message) }),
  "compressed, without saying how": (message) => ({ bytes: frame(1, message.length, message) }),
  "compressed, and it is not": (message) => ({
    bytes: frame(1, message.length, message),
    headers: { "grpc-encoding": pick(["gzip", "deflate", "snappy", "\u007f"]) },
  }),
  "no frame": (message) => ({ bytes: message }),
  nothing: () => ({ bytes: Buffer.alloc(0) }),
  "two messages": (message) => ({
    bytes: Buffer.concat([frame(0, message.length, message), frame(0, message.length, message)]),
  }),
  "wrong content type": (message) => ({
    bytes: frame(0, message.length, message),
    headers: { "content-type": pick(["application/json", "text/html", "application/grp"]) },
  }),
  "odd time-out": (message) => ({
    bytes: frame(0, message.length, message),
    headers: { "grpc-timeout": pick(["1", "S", "-1S", "99999999H", "0n", "1e9S"]) },
  }),
  "unknown method": (message) => ({
    bytes: frame(0, message.length, message),
    headers: { ":path": pick(["/", "/idmint.v1.IdService/Nothing", "/x/y/z", "/%00"]) },
  }),
};

function frame(flag: number, length: number, message: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, message]);
}

interface Outcome {
  readonly http: number | undefined;
  /** Its name. */
  readonly code: string | undefined;
  readonly message: string;
}

/** One call by hand; it ends when the server says so. */
function send(
  session: ClientHttp2Session,
  path: string,
  bytes: Buffer,
  more: object,
): Promise<Outcome> {
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    ...more,
  });
  let outcome: Outcome = { http: undefined, code: undefined, message: "" };
  const take = (headers: Readonly<Record<string, unknown>>): void => {
    const { ":status": http = outcome.http, "grpc-status": code, "grpc-message": said } = headers;
    outcome = {
      http: http === undefined ? undefined : Number(http),
      code: code === undefined ? outcome.code : status[Number(code)],
      message: typeof said === "string" ? said : outcome.message,
    };
  };
  stream.on("response", take);
  stream.on("trailers", take);
  // A reset after the answer: the server does not want the rest of what it refused.
  stream.on("error", () => undefined);
  const timer = setTimeout(() => {
    reject(
      new Error(`no end after ${GIVE_UP_MS} ms: ${path} ${bytes.toString("hex").slice(0, 400)}`),
    );
  }, GIVE_UP_MS);
  stream.once("close", () => {
    clearTimeout(timer);
    resolve(outcome);
  });
  stream.on("data", () => {
    // A watch was answered, and goes on for ever.
    if (path.endsWith("/Watch")) {
      outcome = { ...outcome, code: "OK" };
      stream.close(constants.NGHTTP2_CANCEL);
    }
  });
  stream.end(bytes);
  return promise;
}

/** Those of the table, and what grpc-js refuses the protocol itself with. */
const TYPED = new Set<string>([
  ...Object.values(CODE_OF_REASON),
  "OK",
  "UNIMPLEMENTED",
  "RESOURCE_EXHAUSTED",
  "DEADLINE_EXCEEDED",
]);

/** What both doors say of messages that cannot be told from each other, or not be read, and of a time-out that is none. */
const OF_GRPC =
  /^Failed to decompress|^Invalid grpc-timeout|^grpc-timeout must|does not decompress|flagged as compressed|^the flag before|in the middle of a message/;

/** Why an outcome is not as it should be; undefined: it is. */
function faultOf({ http, code, message }: Outcome, how: string): string | undefined {
  if (http === UNSUPPORTED_MEDIA_TYPE) return how === "wrong content type" ? undefined : "HTTP 415";
  if (code === undefined) return `no status, HTTP ${http}`;
  // As gRPC wants it: doors/malformed.ts.
  const isOfGrpc = OF_GRPC.test(decodeURI(message));
  if (code === "INTERNAL") return isOfGrpc ? undefined : `INTERNAL: ${message}`;
  return TYPED.has(code) ? undefined : `${code}: ${message}`;
}

test(
  "mutated messages over every RPC get errors of the table, and the server goes on",
  { timeout: 3_600_000 },
  async () => {
    const it = await startTest();
    await createTag(it, "orders");
    const session = connect(`http://${it.server.grpcAddress}`);
    onTestFinished(() => session.destroy());
    let isClosed = false;
    session.on("error", () => undefined);
    session.once("close", () => (isClosed = true));
    const faults: string[] = [];
    const codes = new Set<string | undefined>();
    let sent = 0;
    const sender = async (): Promise<void> => {
      while (sent < MESSAGES && faults.length < 5) {
        // Each method in turn; the rest is drawn.
        const { path } = methods[sent++ % methods.length] as Method;
        const mutation = pick(Object.keys(MUTATIONS));
        const how = below(3) === 0 ? pick(Object.keys(FRAMES)) : "right";
        const message = MUTATIONS[mutation]?.(below(2) === 0 ? usual() : plausible(3));
        const { bytes, headers = {} } = FRAMES[how]?.(message ?? Buffer.alloc(0)) ?? {
          bytes: Buffer.alloc(0),
        };
        const outcome = await send(session, path, bytes, headers);
        codes.add(outcome.code);
        const fault = faultOf(outcome, how);
        if (fault !== undefined) {
          faults.push(
            `${path}, ${mutation}, ${how}: ${fault} (${bytes.toString("hex").slice(0, 200)})`,
          );
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, sender));
    expect(faults, `IDMINT_SEED=${seed}`).toEqual([]);
    expect(isClosed).toBe(false);
    expect(it.events.filter(({ type }) => type === "internal-error")).toEqual([]);
    // They reached the services: some were answered, some were bad values, and some were no messages.
    for (const code of ["OK", "INVALID_ARGUMENT", "NOT_FOUND", undefined]) {
      expect(codes, `IDMINT_SEED=${seed}`).toContain(code);
    }
    // One of them may have stopped all servers, as one may.
    await call(it.nodes, api.NodeServiceService.resumeIssuing, { validateOnly: false });
    await createTag(it, "afterwards");
    expect(await generateId(it, "afterwards")).toBeDefined();
  },
);
