// Every RPC, by hand over a door of gRPC: messages out of the descriptors, spoilt, in frames that are not all right.
import { type ClientHttp2Session, connect, constants } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";
import type { Dice } from "../../sim/world/random.ts";
import { METHODS, requestBytes } from "../draw/messages.ts";
import { faultOfAnswer, faultOfRefusal } from "../judge/answers.ts";
import type { Target } from "../target.ts";
import type { World } from "../world.ts";

/** One call. */
interface Input {
  readonly path: string;
  /** In hexadecimal digits. */
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const WITHIN_MS = 20_000;
const STOP = "/idmint.v1.NodeService/StopIssuing";
const UNSUPPORTED_MEDIA_TYPE = 415;
/** Calls on one connection, which is then another one. */
const CALLS_A_SESSION = 5_000;
const OLD_MS = 1_000;

function frame(flag: number, length: number, message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, message]);
}

type Framed = Pick<Input, "headers"> & { readonly bytes: Buffer };
type Framing = (message: Buffer, dice: Dice) => Framed;

const right: Framing = (message) => ({ bytes: frame(0, message.length, message) });
const withHeader =
  (name: string, values: readonly string[], flag = 0): Framing =>
  (message, dice) => ({
    bytes: frame(flag, message.length, message),
    headers: { [name]: dice.pick(values) },
  });

const FRAMINGS: readonly Framing[] = [
  (message, dice) => ({ bytes: frame(0, message.length + dice.int(1, 1e6), message) }),
  (message, dice) => ({ bytes: frame(0, dice.int(0, message.length), message) }),
  (message) => ({ bytes: frame(0, 2 ** 32 - 1, message) }),
  (message) => ({ bytes: frame(1, message.length, message) }),
  (message, dice) => ({ bytes: frame(dice.int(2, 255), message.length, message) }),
  (message) => ({ bytes: message }),
  () => ({ bytes: Buffer.alloc(0) }),
  (message) => ({ bytes: Buffer.concat(Array(2).fill(frame(0, message.length, message))) }),
  withHeader("grpc-encoding", ["gzip", "deflate", "snappy", "\u007f"], 1),
  withHeader("content-type", ["application/json", "text/html", "application/grp"]),
  withHeader("grpc-timeout", ["1", "S", "-1S", "99999999H", "0n", "1n", "1e9S", "100000000S"]),
  withHeader("authorization", ["Bearer x", "Bearer idm_0123456789abcdef_x", "Basic eDp5", ""]),
  withHeader(":path", ["/", "/idmint.v1.IdService/Nothing", "/x/y/z", "/%00", "/constructor"]),
  withHeader("idmint-instance", ["", "x".repeat(300), "\u0001"]),
];

function draw(dice: Dice): string {
  let [path, method] = dice.pick([...METHODS]);
  // Whoever stops everybody keeps all others from being looked at.
  if (path === STOP && dice.chance(0.9)) [path, method] = dice.pick([...METHODS]);
  const message = requestBytes(dice, method);
  const isOdd = dice.chance(0.15);
  const { bytes, headers } = isOdd ? dice.pick(FRAMINGS)(message, dice) : right(message, dice);
  const more = method.methodKind === "bidi_streaming" && !isOdd ? dice.int(0, 3) : 0;
  const others = Array.from({ length: more }, () => right(requestBytes(dice, method), dice).bytes);
  const body = Buffer.concat([bytes, ...others]).toString("hex");
  return JSON.stringify({ path, body, ...(headers === undefined ? {} : { headers }) });
}

interface Outcome {
  readonly http?: number;
  readonly code?: string;
  readonly message: string;
  readonly details: Buffer | undefined;
  readonly body: Buffer;
}

/** Fulfils when the server has ended the call. */
function send(session: ClientHttp2Session, { path, body, headers }: Input): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    // Longer than an input may take, so that a call that does not end is seen.
    "grpc-timeout": "60S",
    ...headers,
  });
  let outcome: Outcome = { message: "", details: undefined, body: Buffer.alloc(0) };
  const take = (of: Readonly<Record<string, unknown>>): void => {
    const { ":status": http, "grpc-status": code, "grpc-message": message } = of;
    const details = of["grpc-status-details-bin"];
    outcome = {
      ...outcome,
      ...(http === undefined ? {} : { http: Number(http) }),
      ...(code === undefined ? {} : { code: status[Number(code)] ?? "no code" }),
      message: typeof message === "string" ? decodeURIComponent(message) : outcome.message,
      details: typeof details === "string" ? Buffer.from(details, "base64") : outcome.details,
    };
  };
  const chunks: Buffer[] = [];
  stream.on("response", take);
  stream.on("trailers", take);
  // A reset after the answer: the server does not want the rest of what it refused.
  stream.on("error", () => undefined);
  stream.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    if (!path.endsWith("/Watch")) return;
    // It was answered, and goes on for ever.
    outcome = { ...outcome, code: "CANCELLED" };
    stream.close(constants.NGHTTP2_CANCEL);
  });
  stream.once("close", () => resolve({ ...outcome, body: Buffer.concat(chunks) }));
  stream.end(Buffer.from(body, "hex"));
  return promise;
}

/** Refusals of the protocol itself, of which idmint's table knows nothing: frames and messages that do not fit together. */
const OF_PROTOCOL: ReadonlySet<string> = new Set([
  "UNIMPLEMENTED",
  "RESOURCE_EXHAUSTED",
  "DEADLINE_EXCEEDED",
]);
/** What gRPC wants to be INTERNAL. */
const INTERNAL_OF_PROTOCOL =
  /^Failed to decompress|^Invalid grpc-timeout|^grpc-timeout must|does not decompress|flagged as compressed|^the flag before|in the middle of a message/;

function faultOfBody(method: DescMethod, body: Buffer): string | undefined {
  for (let at = 0; at + 5 <= body.length;) {
    const end = at + 5 + body.readUInt32BE(at + 1);
    const fault = faultOfAnswer(method, body.subarray(at + 5, end));
    if (fault !== undefined) return fault;
    at = end;
  }
  return undefined;
}

function faultOf(method: DescMethod | undefined, input: Input, outcome: Outcome) {
  const { http, code, message, body } = outcome;
  if (http === UNSUPPORTED_MEDIA_TYPE)
    return input.headers?.["content-type"] === undefined ? "HTTP 415" : undefined;
  if (code === undefined) return `no status, HTTP ${http}: ${message}`;
  const wrong = method === undefined ? undefined : faultOfBody(method, body);
  if (wrong !== undefined) return wrong;
  if (code === "OK" || code === "CANCELLED") return undefined;
  if (method === undefined || input.headers?.[":path"] !== undefined)
    return code === "UNIMPLEMENTED" ? undefined : `${code} of an unknown method: ${message}`;
  const isOfProtocol =
    code === "INTERNAL" ? INTERNAL_OF_PROTOCOL.test(message) : OF_PROTOCOL.has(code);
  if (outcome.details === undefined && isOfProtocol) return undefined;
  return faultOfRefusal(method.input, { ...outcome, code });
}

/** A connection that is another one from time to time, as those of clients are. */
class Sessions {
  readonly #url: string;
  #session: ClientHttp2Session | undefined;
  #calls = 0;

  constructor(address: string) {
    this.#url = `http://${address}`;
  }

  get(): ClientHttp2Session {
    if (this.#calls++ % CALLS_A_SESSION === 0) {
      const old = this.#session;
      // What was asked for just now may not have been sent.
      setTimeout(() => old?.close(), OLD_MS);
      this.#session = undefined;
    }
    if (this.#session !== undefined && !this.#session.closed) return this.#session;
    this.#session = connect(this.#url);
    this.#session.on("error", () => undefined);
    return this.#session;
  }

  close(): void {
    this.#session?.close();
    this.#session = undefined;
  }
}

export function grpcTarget(world: World): Target {
  const sessions = new Sessions(world.grpcAddress);
  return {
    draw,
    run: async (text) => {
      const input = JSON.parse(text) as Input;
      const call = (): Promise<Outcome> => send(sessions.get(), input);
      const outcome = await (input.path === STOP ? world.aroundStop(call) : call());
      return faultOf(METHODS.get(input.path), input, outcome);
    },
    faults: world.faults,
    atOnce: 32,
    withinMs: WITHIN_MS,
    close: async () => {
      sessions.close();
      await world.close();
    },
  };
}
