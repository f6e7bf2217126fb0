// gRPC by hand over node:http2, for what no client of gRPC would send.
import {
  type ClientHttp2Session,
  type ClientSessionOptions,
  connect,
  constants,
  type IncomingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";
import { onTestFinished } from "vitest";

const GENERATE_ID = "/idmint.v1.IdService/GenerateId";
export const STREAM_IDS = "/idmint.v1.IdService/StreamIds";

/** How a call ended. */
export interface Ended {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  /** Empty: everything stood in one head. */
  readonly trailers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The code of RST_STREAM. */
  readonly code: number;
}

/** The status of gRPC, wherever it stood. */
export function grpcStatus({ headers, trailers }: Ended): string | undefined {
  return String(trailers["grpc-status"] ?? headers["grpc-status"]);
}

export function session(
  address: string,
  options: ClientSessionOptions | SecureClientSessionOptions = {},
): ClientHttp2Session {
  const made = connect(`http://${address}`, options);
  made.on("error", () => undefined);
  onTestFinished(() => made.destroy());
  return made;
}

export function framed(message: Uint8Array, flag = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

export interface Sent {
  readonly path?: string;
  readonly headers?: Record<string, string | string[]>;
  /** What is sent, each part by itself. */
  readonly parts?: readonly Uint8Array[];
  /** Whether the request ends. Default: true. */
  readonly ends?: boolean;
}

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** One call, to its end. */
export async function send(
  through: ClientHttp2Session,
  { path = GENERATE_ID, headers = {}, parts = [], ends = true }: Sent,
): Promise<Ended> {
  const request = through.request(
    {
      [constants.HTTP2_HEADER_METHOD]: "POST",
      [constants.HTTP2_HEADER_PATH]: path,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    },
    { endStream: ends && parts.length === 0 },
  );
  // Longer than anything takes that ends.
  request.setTimeout(20_000, () => request.destroy());
  const ended = new Promise<Ended>((resolve) => {
    let got: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders = {};
    const body: Buffer[] = [];
    request.on("response", (its) => (got = its));
    request.on("trailers", (its: IncomingHttpHeaders) => {
      trailers = its;
    });
    request.on("data", (chunk: Buffer) => body.push(chunk));
    request.on("error", () => undefined);
    request.on("close", () => {
      const status = got[constants.HTTP2_HEADER_STATUS];
      resolve({
        status: status === undefined ? undefined : Number(status),
        headers: got,
        trailers,
        body: Buffer.concat(body),
        code: request.rstCode,
      });
    });
  });
  for (const [at, part] of parts.entries()) {
    if (request.destroyed || request.writableEnded) break;
    if (ends && at === parts.length - 1) request.end(part);
    else request.write(part);
    await tick();
  }
  return ended;
}
