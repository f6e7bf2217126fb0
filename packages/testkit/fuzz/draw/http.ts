// Requests of HTTP with something wrong about them, or several things.
import type { DescMethod } from "@bufbuild/protobuf";
import type { Dice } from "../../sim/world/random.ts";
import { broken, noise } from "./bytes.ts";
import { drawn, jsonOf, requestBytes } from "./messages.ts";

/** What is sent, and what may come of it. */
export interface Drawn {
  /** Written one after the other. */
  readonly parts: readonly Buffer[];
  /** Answers that there may be. */
  readonly requests: number;
  /** An answer to HEAD has a length and no body. */
  readonly isHead: boolean;
  /** A browser would have sent it for a page of another origin. */
  readonly isFromElsewhere: boolean;
}

interface FuzzedRequest {
  readonly of: DescMethod;
  method: string;
  path: string;
  version: string;
  headers: string[];
  body: Buffer;
  /** Whether its length is told, as it is. */
  isFramed: boolean;
  isFromElsewhere: boolean;
}

function below(dice: Dice, limit: number): number {
  return dice.int(0, Math.max(0, limit - 1));
}

function usual(dice: Dice, of: DescMethod): string {
  return JSON.stringify(jsonOf(drawn(dice, of.input)));
}

const BODIES: Readonly<Record<string, (dice: Dice, of: DescMethod) => Buffer>> = {
  usual: (dice, of) => Buffer.from(usual(dice, of)),
  "fields twice": () => Buffer.from('{"tag":"orders","tag":"ghost","t\\u0061g":"x"}'),
  broken: (dice, of) => broken(dice, Buffer.from(usual(dice, of))),
  "deep arrays": (dice) => Buffer.from("[".repeat(dice.pick([100, 5_000, 60_000]))),
  "deep objects": () => Buffer.from('{"tag":'.repeat(5_000)),
  "deep values": () =>
    Buffer.from(`{"tag":${"[".repeat(5_000)}${"]".repeat(5_000)},"x":${"[".repeat(9)}}`),
  "many fields": () =>
    Buffer.from(`{${Array.from({ length: 4_000 }, (_, at) => `"f${at}":${at}`).join()}}`),
  "invalid UTF-8": () => Buffer.from([0x7b, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0x7d]),
  "byte order mark": (dice, of) => Buffer.from(`\ufeff${usual(dice, of)}`),
  noise: (dice) => noise(dice, 300),
  "too large": (dice) => Buffer.alloc(65 * 1_024 + below(dice, 10_000), 0x20),
  "another request": () => smuggled(),
};

/** Would mint from a tag that nobody else asks for. */
function smuggled(): Buffer {
  const body = '{"tag":"smuggled"}';
  return Buffer.from(
    `POST /idmint.v1.IdService/GenerateId HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
}

const long = "x".repeat(17 * 1_024);

/**
 * What may be wrong besides the body. A header that breaks the request stands in the place of its length: what follows would
 * be read as another request if the server went on.
 */
const MUTATIONS: Readonly<Record<string, (request: FuzzedRequest, dice: Dice) => void>> = {
  nothing: () => undefined,
  method: (request, dice) => {
    request.method = dice.pick([
      "GET",
      "HEAD",
      "PUT",
      "DELETE",
      "OPTIONS",
      "PATCH",
      "TRACE",
      "CONNECT",
      "BREW",
      "post",
      "PO ST",
      "",
      "M-SEARCH",
      "PRI",
    ]);
  },
  path: (request, dice) => {
    request.path = dice.pick([
      "/",
      "*",
      "",
      "//",
      "/healthz",
      "/readyz?x",
      "/metrics",
      "/console/",
      "/console/%2e%2e/package.json",
      "/console/../../package.json",
      "/%00",
      "/\u0001",
      "/é",
      "/a b",
      `http://evil.example${request.path}`,
      `//evil.example${request.path}`,
      `${request.path}/`,
      `${request.path}?token=secret`,
      request.path.toLowerCase(),
      request.path.replace("e", "%65"),
      request.path.replace("/", "\\"),
      "/grpc.health.v1.Health/Check",
      "/grpc.health.v1.Health/Watch",
      "/idmint.v1.IdService/Nothing",
      "/idmint.v1.Nothing/GenerateId",
      "/constructor.v1.x/y",
      "/api/segment/get/segment",
      "/api/snowflake/get/snowflake",
      "/decodeSnowflakeId?snowflakeId=-1",
      "/tinyid/id/nextId?bizType=segment&batchSize=3&token=x",
      "/tinyid/id/nextSegmentIdSimple?bizType=%ff&token=",
      "/tinyid/id/nextIdSimple?batchSize=99999999999",
      `/${long}`,
    ]);
  },
  version: (request, dice) => {
    request.version = dice.pick([
      "HTTP/1.0",
      "HTTP/0.9",
      "HTTP/1.2",
      "HTTP/2.0",
      "HTTQ/1.1",
      "",
      "http/1.1",
    ]);
  },
  proto: (request, dice) => {
    request.headers[1] = "content-type: application/proto";
    request.body = requestBytes(dice, request.of);
  },
  "another host": (request, dice) => {
    const host = dice.pick([
      "evil.example",
      "localhost.evil.example",
      "",
      "[::1",
      "localhost, evil.example",
    ]);
    request.headers[0] = `host: ${host}`;
    request.isFromElsewhere = true;
  },
  "two hosts": (request) => {
    request.headers.push("host: evil.example");
    request.isFromElsewhere = true;
  },
  "no host": (request) => {
    request.headers[0] = "x-host: localhost";
    request.isFromElsewhere = true;
  },
  "another origin": (request, dice) => {
    request.headers.push(
      dice.pick([
        "origin: http://evil.example",
        "origin: null",
        "sec-fetch-site: cross-site",
        "origin: http://localhost:1",
        "sec-fetch-site: same-site",
      ]),
    );
    request.isFromElsewhere = true;
  },
  "content type": (request, dice) => {
    request.headers[1] = dice.pick([
      "content-type: text/plain",
      "content-type: application/x-www-form-urlencoded",
      "content-type: multipart/form-data; boundary=x",
      "content-type: application/proto",
      "content-type: application/json; charset=utf-8",
      "content-type: application/json; charset=latin1",
      "content-type: application/connect+json",
      "content-type: application/grpc-web+proto",
      "content-type:",
      "x: y",
    ]);
  },
  "odd header": (request, dice) => {
    request.headers.push(
      dice.pick([
        "connect-timeout-ms: 0",
        "connect-timeout-ms: -5",
        "connect-timeout-ms: 99999999999",
        "connect-protocol-version: 2",
        "content-encoding: gzip",
        "content-encoding: br, gzip",
        "authorization: Bearer x",
        "authorization: Basic x\r\nauthorization: Bearer y",
        "expect: 100-continue",
        "expect: the worst",
        "upgrade: websocket\r\nconnection: upgrade",
        "upgrade: h2c\r\nconnection: upgrade, http2-settings\r\nhttp2-settings: AAMAAABkAAQCAAAAAAIAAAAA",
        "connection: close",
        "connection: keep-alive, x",
        "range: bytes=0-1",
        "cookie: a=b",
        "accept-encoding: *;q=0",
        "trailer: host",
        "traceparent: 00-x-y-zz",
        "x-forwarded-host: evil.example",
        "x-http-method-override: DELETE",
        " folded",
        "x: a\u0000b",
        `x: ${long}`,
      ]),
    );
  },
  "broken header": (request, dice) => {
    request.isFramed = false;
    request.headers.push(
      dice.pick([
        "no colon",
        "space : before",
        "x: a\rb",
        "x: a\nb",
        ": nameless",
        "content-length: -1",
        "content-length: +5",
        "content-length: 0x5",
        "content-length: 5, 5",
        "content-length: 99999999999999999999",
        "content-length: 3\r\ncontent-length: 4",
        "content-length: 5\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 5",
        "transfer-encoding: xchunked",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: chunked, chunked",
        "transfer-encoding:\u000bchunked",
        "transfer-encoding : chunked",
        "Transfer-Encoding: CHUNKED\r\ntransfer-encoding: x",
      ]),
    );
  },
  "many headers": (request) => {
    for (let at = 0; at < 2_500; at++) request.headers.push(`h${at}: ${at}`);
  },
  chunked: (request, dice) => {
    request.isFramed = false;
    request.headers.push("transfer-encoding: chunked");
    const { body } = request;
    const size = dice.pick([
      body.length.toString(16),
      body.length.toString(16),
      `${body.length.toString(16)};x=y`,
      `${body.length.toString(16)};${long}`,
      "0",
      "-1",
      "FFFFFFFFFFFFFFFF",
      "zz",
      "",
      (body.length + 1).toString(16),
    ]);
    const end = dice.pick([
      "0\r\n\r\n",
      "0\r\n\r\n",
      "0\r\nhost: evil.example\r\n\r\n",
      "",
      "0\r\n",
    ]);
    request.body = Buffer.concat([Buffer.from(`${size}\r\n`), body, Buffer.from(`\r\n${end}`)]);
  },
};

const USUAL_HEADERS = ["host: localhost", "content-type: application/json"];

function fuzzed(dice: Dice, [path, of]: readonly [string, DescMethod]): FuzzedRequest {
  const body = dice.chance(0.3) ? dice.pick(Object.values(BODIES)) : BODIES["usual"];
  const request: FuzzedRequest = {
    of,
    method: "POST",
    path,
    version: "HTTP/1.1",
    headers: [...USUAL_HEADERS],
    body: body?.(dice, of) ?? Buffer.alloc(0),
    isFramed: true,
    isFromElsewhere: false,
  };
  if (dice.chance(0.3)) MUTATIONS["proto"]?.(request, dice);
  for (let mutations = below(dice, 3); mutations > 0; mutations--) {
    dice.pick(Object.values(MUTATIONS))(request, dice);
  }
  return request;
}

function bytesOf({ method, path, version, headers, body, isFramed }: FuzzedRequest): Buffer {
  const all = isFramed ? [...headers, `content-length: ${body.length}`] : headers;
  const head = `${method} ${path} ${version}\r\n${all.join("\r\n")}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

/** A request for this method, or several of them, with something wrong. */
export function drawRequests(dice: Dice, method: readonly [string, DescMethod]): Drawn {
  const several = below(dice, 10) === 0 ? 2 + below(dice, 40) : 1;
  const requests = Array.from({ length: several }, () => fuzzed(dice, method));
  const bytes = Buffer.concat(requests.map(bytesOf));
  const at = below(dice, bytes.length);
  const isBroken = requests.some(({ isFramed }) => !isFramed);
  return {
    parts: below(dice, 4) === 0 ? [bytes.subarray(0, at), bytes.subarray(at)] : [bytes],
    // Where the end of a body is not told as it is, what follows in it may be read as requests that are none.
    requests: isBroken ? several + 1 : several,
    isHead: requests.some(({ method }) => method === "HEAD"),
    // Of several, others may be right.
    isFromElsewhere: several === 1 && !isBroken && mayTellNothing(requests),
  };
}

/** Health is told to everybody. */
function mayTellNothing(requests: readonly FuzzedRequest[]): boolean {
  return requests.every(
    ({ isFromElsewhere, path }) => isFromElsewhere && !/^\/(?:healthz|readyz)/.test(path),
  );
}
