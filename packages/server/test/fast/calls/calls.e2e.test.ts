// gRPC's rules on the wire of the fast door, by requests that no client of gRPC sends.
import { constants } from "node:http2";
import { deflateSync, gzipSync } from "node:zlib";
import {
  GenerateIdRequest,
  GenerateIdResponse,
  GenerateIdsRequest,
  StreamIdsRequest,
} from "@idmint/proto";
import { Status } from "@idmint/proto/rpc";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { realSystem } from "../../../src/main/system.ts";
import { FLAG } from "../../../src/fast/http2/frames.ts";
import { createTag, sleep, startTest, type TestServer, until } from "../../support.ts";
import { GREETING, RawFrames } from "../frames.ts";
import { data, NOTHING, request } from "../test-connection.ts";
import { type Ended, framed, grpcStatus, send, type Sent, session, STREAM_IDS } from "../wire.ts";

const ORDER = Buffer.from(GenerateIdRequest.encode({ tag: "orders", name: "" }).finish());
const GHOST = Buffer.from(GenerateIdRequest.encode({ tag: "ghost", name: "" }).finish());
const GENERATE_ID = "/idmint.v1.IdService/GenerateId";
const GENERATE_IDS = "/idmint.v1.IdService/GenerateIds";
const NO_ERROR = constants.NGHTTP2_NO_ERROR;

async function served(flags: Record<string, string> = {}): Promise<TestServer> {
  const it = await startTest({ flags: { "grpc-door": "fast", ...flags } });
  await createTag(it, "orders");
  return it;
}

function idOf({ body }: Ended): bigint {
  expect(body[0]).toBe(0);
  expect(body.readUInt32BE(1)).toBe(body.length - 5);
  return GenerateIdResponse.decode(body.subarray(5)).id;
}

test("a request is answered however its message is cut and compressed", async () => {
  const { server } = await served();
  const through = session(server.grpcAddress);
  const whole = framed(ORDER);
  const none = Buffer.alloc(0);
  const gzip = { "grpc-encoding": "gzip" };
  const requests: Sent[] = [
    { parts: [whole] },
    { parts: [whole, none] },
    { parts: [none, whole.subarray(0, 1), none, whole.subarray(1, 7), whole.subarray(7)] },
    { parts: [...whole].map((byte) => Buffer.from([byte])) },
    { headers: gzip, parts: [framed(gzipSync(ORDER), 1)] },
    { headers: gzip, parts: [framed(ORDER, 0)] },
    { headers: { "grpc-encoding": "deflate" }, parts: [framed(deflateSync(ORDER), 1)] },
    { headers: { "grpc-encoding": "identity" }, parts: [whole] },
    { headers: { "content-type": "application/grpc+proto" }, parts: [whole] },
    // Metadata that nobody here reads: with padding, without, two in one, and none in base64.
    {
      headers: { "a-bin": "QQ==", "b-bin": "QQ", "c-bin": "QQ==,Qg", "d-bin": "?" },
      parts: [whole],
    },
    { headers: { "grpc-timeout": "99999999H" }, parts: [whole] },
  ];
  const ids: bigint[] = [];
  for (const request of requests) {
    const ended = await send(through, request);
    expect([ended.status, ended.trailers["grpc-status"], ended.code]).toEqual([200, "0", NO_ERROR]);
    ids.push(idOf(ended));
  }
  expect(new Set(ids).size).toBe(requests.length);
});

test.each<[what: string, Sent, status: string]>([
  ["no message", { parts: [Buffer.alloc(0)] }, "12"],
  ["no body", {}, "12"],
  ["half a message", { parts: [framed(ORDER).subarray(0, -1)] }, "13"],
  [
    "a message and a half",
    { parts: [Buffer.concat([framed(ORDER), framed(ORDER).subarray(0, -1)])] },
    "13",
  ],
  ["half a prefix", { parts: [Buffer.from([0, 0])] }, "13"],
  ["two messages at once", { parts: [Buffer.concat([framed(ORDER), framed(ORDER)])] }, "12"],
  ["two messages", { parts: [framed(ORDER), framed(ORDER)], ends: false }, "12"],
  ["another flag", { parts: [framed(ORDER, 2)], ends: false }, "13"],
  ["a flag without an encoding", { parts: [framed(gzipSync(ORDER), 1)], ends: false }, "13"],
  [
    "what is not compressed as it says",
    { headers: { "grpc-encoding": "gzip" }, parts: [framed(ORDER, 1)] },
    "13",
  ],
  [
    "a few bytes that become many",
    { headers: { "grpc-encoding": "gzip" }, parts: [framed(gzipSync(Buffer.alloc(2 ** 24)), 1)] },
    "8",
  ],
  ["a message that is too large", { parts: [Buffer.from([0, 0, 0, 0x40, 1])], ends: false }, "8"],
  ["bytes that are none of protobuf", { parts: [framed(Buffer.alloc(3, 0xff))] }, "3"],
  ["a method that is not there", { path: "/idmint.v1.IdService/No", parts: [framed(ORDER)] }, "12"],
  ["a path that is none", { path: "/", parts: [framed(ORDER)] }, "12"],
  ["another encoding", { headers: { "grpc-encoding": "br" }, parts: [framed(ORDER)] }, "12"],
  ["a timeout of nine digits", { headers: { "grpc-timeout": "123456789S" } }, "13"],
  ["a timeout without a unit", { headers: { "grpc-timeout": "1" } }, "13"],
])("%s is refused with a status, and the connection goes on", async (_, request, status) => {
  const { server } = await served();
  const through = session(server.grpcAddress);
  const ended = await send(through, request);
  expect([ended.status, grpcStatus(ended), ended.code]).toEqual([200, status, NO_ERROR]);
  // The status stands in the head: there is nothing else.
  expect([ended.headers["grpc-status"], ended.body.length]).toEqual([status, 0]);
  if (request.headers?.["grpc-encoding"] === "br") {
    expect(ended.headers["grpc-accept-encoding"]).toBe("identity,deflate,gzip");
  }
  expect(idOf(await send(through, { parts: [framed(ORDER)] }))).toBeGreaterThan(0n);
});

test("what is none of gRPC is told so by HTTP", async () => {
  const { server } = await served();
  const through = session(server.grpcAddress);
  const status = async (headers: Record<string, string>): Promise<number | undefined> => {
    const ended = await send(through, { headers, parts: [framed(ORDER)] });
    expect([...Object.keys(ended.headers), ...Object.keys(ended.trailers)]).not.toContain(
      "grpc-status",
    );
    return ended.status;
  };
  expect(await status({ "content-type": "application/json" })).toBe(415);
  expect(await status({ "content-type": "application/grpc-web+proto" })).toBe(415);
  expect(await status({ ":method": "PUT" })).toBe(405);
  expect(await status({ "x-large": "x".repeat(8_200) })).toBe(431);
  expect(idOf(await send(through, { parts: [framed(ORDER)] }))).toBe(1n);
});

test("a refusal's text is percent-encoded, and its details are left out where the peer takes no more", async () => {
  const { server } = await served();
  const request: Sent = { parts: [framed(GHOST)] };
  const { headers } = await send(session(server.grpcAddress), request);
  const details = String(headers["grpc-status-details-bin"]);
  expect(details).toMatch(/^[A-Za-z0-9+/]+$/);
  const { code, message } = Status.decode(Buffer.from(details, "base64"));
  expect([String(code), decodeURIComponent(String(headers["grpc-message"]))]).toEqual([
    headers["grpc-status"],
    message,
  ]);
  expect(code).toBe(5);
  // As RFC 7541 counts.
  const size = Object.entries(headers).reduce(
    (sum, [k, v]) => sum + k.length + String(v).length + 32,
    0,
  );
  const limited = async (maxHeaderListSize: number): Promise<Ended> => {
    const through = session(server.grpcAddress, { settings: { maxHeaderListSize } });
    // The first call is behind the settings.
    await send(through, request);
    return send(through, request);
  };
  expect((await limited(size)).headers).toEqual(
    expect.objectContaining({ "grpc-status-details-bin": details }),
  );
  const without = (await limited(size - 1)).headers;
  expect(without["grpc-status-details-bin"]).toBeUndefined();
  expect([without["grpc-status"], without["grpc-message"]]).toEqual(["5", headers["grpc-message"]]);
  const least = (await limited(200)).headers;
  expect([least["grpc-status"], least["grpc-message"]]).toEqual(["5", undefined]);
});

test("a call whose handler takes too long ends at its deadline, and so does what its caller gave up", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  onTestFinished(() => resolve());
  const seen: AbortSignal[] = [];
  const it = await startTest({
    flags: { "grpc-door": "fast" },
    parts: {
      authorise: (context, _, request) => {
        if ((request as GenerateIdRequest).tag !== "never") return undefined;
        seen.push(context.signal);
        return promise;
      },
    },
  });
  await createTag(it, "orders");
  const never = framed(GenerateIdRequest.encode({ tag: "never", name: "" }).finish());
  const through = session(it.server.grpcAddress);
  const began = performance.now();
  const late = await send(through, { headers: { "grpc-timeout": "200m" }, parts: [never] });
  expect([grpcStatus(late), late.code]).toEqual(["4", NO_ERROR]);
  expect(performance.now() - began).toBeGreaterThan(150);
  expect(seen.map((signal) => signal.aborted)).toEqual([true]);
  const request = through.request({
    ":method": "POST",
    ":path": "/idmint.v1.IdService/GenerateId",
    "content-type": "application/grpc",
  });
  request.on("error", () => undefined);
  request.end(never);
  await until(() => seen.length === 2);
  expect(seen[1]?.aborted).toBe(false);
  request.close(constants.NGHTTP2_CANCEL);
  await until(() => seen[1]?.aborted === true);
  expect(idOf(await send(through, { parts: [framed(ORDER)] }))).toBe(1n);
});

test.each<[what: string, parts: readonly Buffer[]]>([
  ["its head came", []],
  ["half a message came", [framed(ORDER).subarray(0, -1)]],
  ["its message came, and not its end", [framed(ORDER)]],
])("a call of which only %s is answered at its deadline", async (_, parts) => {
  const { server } = await served();
  const through = session(server.grpcAddress);
  const began = performance.now();
  const headers = { "grpc-timeout": "200m" };
  const late = await send(through, { headers, parts, ends: false });
  expect([grpcStatus(late), late.code]).toEqual(["4", NO_ERROR]);
  expect(performance.now() - began).toBeGreaterThan(199);
  expect(idOf(await send(through, { headers, parts: [framed(ORDER)] }))).toBe(1n);
  // Nothing of it is left to expire.
  await sleep(250);
  expect(idOf(await send(through, { parts: [framed(ORDER)] }))).toBe(2n);
});

test("the time of a call counts from its head on, however late the rest comes", async () => {
  const left: number[] = [];
  const it = await startTest({
    flags: { "grpc-door": "fast" },
    parts: {
      authorise: (context) => void left.push(context.deadline - realSystem.clock.now()),
    },
  });
  await createTag(it, "orders");
  const through = session(it.server.grpcAddress);
  const request = through.request({
    ":method": "POST",
    ":path": "/idmint.v1.IdService/GenerateId",
    "content-type": "application/grpc",
    "grpc-timeout": "5S",
  });
  request.on("error", () => undefined);
  await sleep(300);
  request.end(framed(ORDER));
  const before = left.length;
  await until(() => left.length > before);
  // The head may have come some time after it was sent.
  expect(left.at(-1)).toBeLessThan(4_850);
});

test("the time of a call ends with its answer, and is not the next one's", async () => {
  const { server } = await served();
  // Its ids are there, so that calls are answered at once.
  await send(session(server.grpcAddress), { parts: [framed(ORDER)] });
  const raw = new RawFrames(server.grpcAddress);
  raw.send(GREETING, request(1, GENERATE_ID, 0, [["grpc-timeout", "200m"]]));
  await raw.settled();
  raw.send(data(1, framed(ORDER), FLAG.END_STREAM));
  await until(() => raw.field(1, "grpc-status") === "0");
  // It has the memory of the first one.
  raw.send(request(3, GENERATE_ID));
  await sleep(300);
  raw.send(data(3, framed(ORDER), FLAG.END_STREAM));
  await until(() => raw.field(3, "grpc-status") !== undefined);
  expect(raw.field(3, "grpc-status")).toBe("0");
});

test("what a handler answers behind its deadline is not sent", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isSlow = false;
  const it = await startTest({
    flags: { "grpc-door": "fast" },
    parts: { authorise: () => (isSlow ? promise : undefined) },
  });
  await createTag(it, "orders");
  // Its ids are there already, so that the handler answers as soon as it may.
  await send(session(it.server.grpcAddress), { parts: [framed(ORDER)] });
  isSlow = true;
  const raw = new RawFrames(it.server.grpcAddress);
  for (const [id, body] of [
    [1, ORDER],
    [3, GHOST],
  ] as const) {
    raw.send(id === 1 ? GREETING : NOTHING, request(id, GENERATE_ID, 0, [["grpc-timeout", "50m"]]));
    raw.send(data(id, framed(body), FLAG.END_STREAM));
  }
  await until(() => raw.field(3, "grpc-status") !== undefined);
  resolve();
  await raw.settled();
  await sleep(20);
  await raw.settled();
  // One head that ends all.
  expect([raw.field(1, "grpc-status"), raw.on(1).length]).toEqual(["4", 1]);
  expect([raw.field(3, "grpc-status"), raw.on(3).length]).toEqual(["4", 1]);
});

test("half a message at the end of a stream refuses it", async () => {
  const { server } = await served();
  const whole = framed(
    StreamIdsRequest.encode({ call: 1, tag: "orders", count: 0, name: "" }).finish(),
  );
  for (const rest of [whole.subarray(0, 3), whole.subarray(0, -1)]) {
    const parts = [Buffer.concat([whole, rest])];
    const ended = await send(session(server.grpcAddress), { path: STREAM_IDS, parts });
    expect([grpcStatus(ended), ended.code]).toEqual(["13", NO_ERROR]);
    expect(ended.body.length).toBeGreaterThan(5);
  }
});

test("a stream ends at its deadline", async () => {
  const { server } = await served();
  const ended = await send(session(server.grpcAddress), {
    path: STREAM_IDS,
    headers: { "grpc-timeout": "150m" },
    parts: [
      framed(StreamIdsRequest.encode({ call: 1, tag: "orders", count: 0, name: "" }).finish()),
    ],
    ends: false,
  });
  expect([grpcStatus(ended), ended.code]).toEqual(["4", NO_ERROR]);
  expect(ended.body.length).toBeGreaterThan(5);
});

test("requests of a stream wait while its caller takes no answers, and all are answered when it does", async () => {
  const { server } = await served();
  const other = session(server.grpcAddress);
  // Their ids are there already, so that each is answered at once.
  await send(other, { parts: [framed(ORDER)] });
  const through = session(server.grpcAddress, { settings: { initialWindowSize: 0 } });
  const count = 5_000;
  const stream = through.request({
    ":method": "POST",
    ":path": STREAM_IDS,
    "content-type": "application/grpc",
  });
  onTestFinished(() => void stream.destroy());
  stream.on("error", () => undefined);
  const requests = Array.from({ length: count }, (_, at) =>
    framed(
      StreamIdsRequest.encode({
        call: at + 1,
        tag: at === 0 ? "orders" : "",
        count: 0,
        name: "",
      }).finish(),
    ),
  );
  let trailers: Record<string, unknown> = {};
  stream.on("trailers", (its: Record<string, unknown>) => (trailers = its));
  const body: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => body.push(chunk));
  stream.end(Buffer.concat(requests));
  await until(() => server.counters.calls > 2);
  // Others are served meanwhile, so all that came was looked at or kept.
  for (let i = 0; i < 10; i++) {
    await send(other, { parts: [framed(ORDER)] });
  }
  expect(server.counters.calls).toBeLessThan(50);
  through.settings({ initialWindowSize: 1_000 });
  await until(() => trailers["grpc-status"] !== undefined);
  expect(trailers["grpc-status"]).toBe("0");
  let answers = 0;
  const all = Buffer.concat(body);
  for (let at = 0; at < all.length; at += 5 + all.readUInt32BE(at + 1)) answers++;
  expect(answers).toBe(count);
});

test("header blocks name only what the peer's table has, whatever its size, order and windows", async () => {
  const { server } = await served();
  const step = fc.constantFrom(
    "whole",
    "ghost",
    "method",
    "type",
    "stream",
    "late",
    "table 0",
    "table 4096",
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(0, 1, 100, 4_095, 4_096, 65_536),
      fc.array(step, { minLength: 1, maxLength: 12 }),
      async (headerTableSize, steps) => {
        const through = session(server.grpcAddress, { settings: { headerTableSize } });
        const late: Promise<Ended>[] = [];
        const expected: Record<string, readonly [number, string]> = {
          whole: [200, "0"],
          late: [200, "0"],
          stream: [200, "0"],
          ghost: [200, "5"],
          method: [200, "12"],
          type: [415, "undefined"],
        };
        const check = (what: string, ended: Ended): void =>
          expect([what, ended.status, grpcStatus(ended)]).toEqual([
            what,
            ...(expected[what] ?? []),
          ]);
        const requests: Record<string, Sent> = {
          whole: { parts: [framed(ORDER)] },
          late: { parts: [framed(ORDER)] },
          ghost: { parts: [framed(GHOST)] },
          method: { path: "/no", parts: [framed(ORDER)] },
          type: { headers: { "content-type": "text/plain" }, parts: [framed(ORDER)] },
          stream: { path: STREAM_IDS, parts: [] },
        };
        for (const what of steps) {
          const table = /^table (\d+)$/.exec(what)?.[1];
          if (table !== undefined) {
            through.settings({ headerTableSize: Number(table) });
          } else if (what === "late") {
            // Its answer waits for a window while others are answered.
            through.settings({ initialWindowSize: 0 });
            late.push(send(through, requests[what] ?? {}));
            check("ghost", await send(through, requests["ghost"] ?? {}));
            through.settings({ initialWindowSize: 65_535 });
          } else {
            check(what, await send(through, requests[what] ?? {}));
          }
        }
        for (const ended of await Promise.all(late)) check("late", ended);
        expect(through.destroyed).toBe(false);
        through.destroy();
      },
    ),
    { numRuns: 40 },
  );
});

test("a connection that keeps too much is told when to call again, and gets all that was begun", async () => {
  const { server } = await served();
  const through = session(server.grpcAddress, { settings: { initialWindowSize: 0 } });
  const much = GenerateIdsRequest.encode(
    GenerateIdsRequest.create({ tag: "orders", count: 10_000, asList: true }),
  ).finish();
  const ended: Ended[] = [];
  const calls: Promise<unknown>[] = [];
  const call = (sent: Sent): void =>
    void calls.push(send(through, sent).then((its) => ended.push(its)));
  for (let i = 0; i < 200; i++) call({ path: GENERATE_IDS, parts: [framed(much)] });
  // None of these is answered while its window is shut.
  await until(async () => {
    call({ parts: [framed(ORDER)] });
    await sleep(50);
    return ended.length > 0;
  });
  const [refused] = ended;
  const details = Buffer.from(String(refused?.headers["grpc-status-details-bin"]), "base64");
  expect(refused && grpcStatus(refused)).toBe("8");
  expect(details.toString("latin1")).toMatch(/OVERLOADED[^]*RetryInfo/);
  through.settings({ initialWindowSize: 1_024 * 1_024 });
  through.setLocalWindowSize(64 * 1_024 * 1_024);
  await Promise.all(calls);
  expect(new Set(ended.map(grpcStatus))).toEqual(new Set(["0", "8"]));
});
