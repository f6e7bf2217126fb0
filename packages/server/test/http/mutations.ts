// Requests of HTTP with something wrong about them, or several things.

/** Numbers from a seed that is printed when the test fails: IDMINT_SEED=… repeats a run. */
export const seed = Number(process.env["IDMINT_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
let state = seed;
function below(limit: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
  return Math.floor(((state >>> 0) / 2 ** 32) * limit);
}
const pick = <T>(of: readonly T[]): T => of[below(of.length)] as T;

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
  method: string;
  path: string;
  version: string;
  headers: string[];
  body: Buffer;
  /** Whether its length is told, as it is. */
  isFramed: boolean;
  isFromElsewhere: boolean;
}

const NAMES = ["orders", "ghost", "", "x".repeat(129), "../..", "\u0000", "漢😀", "a b"];
const VALUES = [
  "orders",
  -1,
  0,
  1,
  1.5,
  2 ** 31,
  2 ** 53,
  1e308,
  "0x10",
  "9223372036854775808",
  null,
  true,
  [],
  {},
  [[]],
  "2026-02-30T00:00:00Z",
  "1.5s",
  "5 minutes",
  "TAG",
  "x".repeat(3_000),
];
const KEYS = [
  "tag",
  "name",
  "count",
  "as_list",
  "pageSize",
  "validateOnly",
  "__proto__",
  "toString",
];

function usual(): string {
  const name = pick(NAMES);
  return JSON.stringify(
    pick([
      { tag: "orders" },
      { tag: name },
      { name },
      { tag: { name, segment: {} } },
      { tag: "orders", count: pick([1, 2, 0, -1, 1e9]) },
      {},
    ]),
  );
}

const BODIES: Readonly<Record<string, () => Buffer>> = {
  usual: () => Buffer.from(usual()),
  "other fields": () => {
    const entries = Array.from({ length: below(5) }, () => [pick(KEYS), pick(VALUES)] as const);
    return Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  },
  "fields twice": () => Buffer.from('{"tag":"orders","tag":"ghost","t\\u0061g":"x"}'),
  "bits flipped": () => {
    const bytes = Buffer.from(usual());
    for (let flips = 1 + below(4); flips > 0; flips--) {
      const at = below(bytes.length);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << below(8));
    }
    return bytes;
  },
  truncated: () => {
    const bytes = Buffer.from(usual());
    return bytes.subarray(0, below(bytes.length));
  },
  "deep arrays": () => Buffer.from("[".repeat(pick([100, 5_000, 60_000]))),
  "deep objects": () => Buffer.from('{"tag":'.repeat(5_000)),
  "deep values": () =>
    Buffer.from(`{"tag":${"[".repeat(5_000)}${"]".repeat(5_000)},"x":${"[".repeat(9)}}`),
  "many fields": () =>
    Buffer.from(`{${Array.from({ length: 4_000 }, (_, at) => `"f${at}":${at}`).join()}}`),
  "invalid UTF-8": () => Buffer.from([0x7b, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0x7d]),
  "byte order mark": () => Buffer.from(`\ufeff${usual()}`),
  noise: () => Buffer.from(Array.from({ length: below(300) }, () => below(256))),
  "too large": () => Buffer.alloc(65 * 1_024 + below(10_000), 0x20),
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
const MUTATIONS: Readonly<Record<string, (request: FuzzedRequest) => void>> = {
  nothing: () => undefined,
  method: (request) => {
    request.method = pick([
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
  path: (request) => {
    request.path = pick([
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
      "/api/segment/get/orders",
      `/${long}`,
    ]);
  },
  version: (request) => {
    request.version = pick([
      "HTTP/1.0",
      "HTTP/0.9",
      "HTTP/1.2",
      "HTTP/2.0",
      "HTTQ/1.1",
      "",
      "http/1.1",
    ]);
  },
  "another host": (request) => {
    const host = pick([
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
  "another origin": (request) => {
    request.headers.push(
      pick([
        "origin: http://evil.example",
        "origin: null",
        "sec-fetch-site: cross-site",
        "origin: http://localhost:1",
        "sec-fetch-site: same-site",
      ]),
    );
    request.isFromElsewhere = true;
  },
  "content type": (request) => {
    request.headers[1] = pick([
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
  "odd header": (request) => {
    request.headers.push(
      pick([
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
  "broken header": (request) => {
    request.isFramed = false;
    request.headers.push(
      pick([
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
  chunked: (request) => {
    request.isFramed = false;
    request.headers.push("transfer-encoding: chunked");
    const { body } = request;
    const size = pick([
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
    const end = pick(["0\r\n\r\n", "0\r\n\r\n", "0\r\nhost: evil.example\r\n\r\n", "", "0\r\n"]);
    request.body = Buffer.concat([Buffer.from(`${size}\r\n`), body, Buffer.from(`\r\n${end}`)]);
  },
};

const USUAL_HEADERS = ["host: localhost", "content-type: application/json"];

function fuzzed(path: string): FuzzedRequest {
  const request: FuzzedRequest = {
    method: "POST",
    path,
    version: "HTTP/1.1",
    headers: [...USUAL_HEADERS],
    body: BODIES[below(3) === 0 ? pick(Object.keys(BODIES)) : "usual"]?.() ?? Buffer.alloc(0),
    isFramed: true,
    isFromElsewhere: false,
  };
  for (let mutations = below(3); mutations > 0; mutations--) {
    MUTATIONS[pick(Object.keys(MUTATIONS))]?.(request);
  }
  return request;
}

function bytesOf({ method, path, version, headers, body, isFramed }: FuzzedRequest): Buffer {
  const all = isFramed ? [...headers, `content-length: ${body.length}`] : headers;
  const head = `${method} ${path} ${version}\r\n${all.join("\r\n")}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

/** A request for this method, or several of them, with something wrong. */
export function draw(path: string): Drawn {
  const several = below(10) === 0 ? 2 + below(40) : 1;
  const requests = Array.from({ length: several }, () => fuzzed(path));
  const bytes = Buffer.concat(requests.map(bytesOf));
  const at = below(bytes.length);
  const isBroken = requests.some(({ isFramed }) => !isFramed);
  return {
    parts: below(4) === 0 ? [bytes.subarray(0, at), bytes.subarray(at)] : [bytes],
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
