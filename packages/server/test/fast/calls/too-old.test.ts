// Calls that outlive their connection: what was asked is answered, and the rest is told to call again. The connection's clock is
// the test's; its socket and its client, grpc-js, are real.
import { createServer } from "node:net";
import { Client, credentials, type ServiceError, status } from "@grpc/grpc-js";
import { IdmintError } from "@idmint/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import type {
  Message,
  StreamHandler,
  UnaryHandler,
  WatchHandler,
} from "../../../src/api/method.ts";
import { type Row, rowOf } from "../../../src/fast/calls/call.ts";
import { Deadlines } from "../../../src/fast/calls/deadlines.ts";
import { FastConnection } from "../../../src/fast/fast-connection.ts";
import { AwakeTime } from "../../../src/fast/http2/lifetime.ts";
import { InFlight } from "../../../src/in-flight.ts";
import { createCounters } from "../../../src/service/counters.ts";
import { nodeTimers } from "../../../src/timers.ts";
import { NOTHING_SHOWN } from "../../../src/tls/names.ts";
import { until } from "../../support.ts";

/** So that the time until its calls are told is shorter than the one in which a silent peer must answer a PING. */
const MAX_AGE_MS = 10_000;
const GRACE_MS = 30_000;
const TOO_OLD = "DRAINING: this connection is too old; call on a new one";

const asIs = (bytes: Buffer): Buffer => bytes;
const rule = { isOpen: true } as UnaryHandler["rule"];

/** Answers are always the same byte. */
const response: UnaryHandler["response"] = {
  encode: () => Buffer.from([7]),
  sizeOf: () => -1,
  write: () => undefined,
};

/** What handlers wait for. */
let gate: PromiseWithResolvers<Message>;
let connection: FastConnection | undefined;
let inFlight: InFlight;
let client: Client;
let awake: AwakeTime;
const counters = createCounters();
const aborted: string[] = [];

const unary: UnaryHandler = {
  kind: "unary",
  rule,
  path: "/test/Unary",
  answer: (_bytes, _from, _to, context) => {
    context.signal.addEventListener("abort", () => aborted.push("unary"));
    return gate.promise;
  },
  response,
  handle: () => {
    throw new Error("this door writes answers in place");
  },
};
const stream: StreamHandler = {
  kind: "stream",
  rule,
  path: "/test/Stream",
  open: () => () => gate.promise,
  response,
};
const watch: WatchHandler = {
  kind: "watch",
  rule,
  path: "/test/Watch",
  open: (bytes, { send }) => {
    send(bytes);
    return () => aborted.push("watch");
  },
};

/** Lets time pass on the connection, a look at a time. */
function pass(forMs: number): void {
  for (let ms = 0; ms < forMs; ms += 250) {
    awake.tick(awake.now + 250);
    connection?.look();
  }
}

beforeEach(async () => {
  gate = Promise.withResolvers();
  aborted.length = 0;
  awake = new AwakeTime(0, 250);
  inFlight = new InFlight(nodeTimers);
  const rows = new Map<string, Row>(
    [unary, stream, watch].map((handler) => [handler.path, rowOf(handler, undefined)]),
  );
  const clock = { now: () => Date.now() };
  const server = createServer((socket) => {
    connection = new FastConnection(
      socket,
      NOTHING_SHOWN,
      rows,
      {
        clock,
        counters,
        access: {
          assertKnown: () => undefined,
          identify: () => {
            throw new Error("nobody is asked for");
          },
        },
        emit: () => undefined,
        deadlines: new Deadlines({ clock, timers: nodeTimers }),
        inFlight,
        streams: new Set(),
      },
      {
        maxAgeMs: MAX_AGE_MS,
        awake,
        shared: {
          held: { bytes: 0, kept: 0, begun: 0, makeRoom: () => undefined },
          turn: { waiting: 0 },
        },
      },
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
    "grpc.enable_retries": 0,
    "grpc.use_local_subchannel_pool": 1,
  });
});

afterEach(() => client.close());

/** Waits until calls are there that a test began. */
async function begun(calls: number): Promise<void> {
  const before = counters.calls;
  await until(() => counters.calls >= before + calls);
}

test("a call that waits is refused, its handler is told, and its late answer goes to nobody", async () => {
  const { promise: failed, resolve } = Promise.withResolvers<ServiceError | null>();
  const seen = begun(1);
  client.makeUnaryRequest("/test/Unary", asIs, asIs, Buffer.from([1]), resolve);
  await seen;
  pass(MAX_AGE_MS + GRACE_MS - 500);
  expect(aborted).toEqual([]);
  pass(750);
  const failure = await failed;
  expect([failure?.code, failure?.details]).toEqual([status.UNAVAILABLE, TOO_OLD]);
  expect(aborted).toEqual(["unary"]);
  gate.resolve({});
  await until(() => connection?.inFlight === 0);
});

test("a stream answers what waits, and then ends", async () => {
  const call = client.makeBidiStreamRequest("/test/Stream", asIs, asIs);
  const answers: Buffer[] = [];
  call.on("data", (answer: Buffer) => answers.push(answer));
  call.on("error", () => undefined);
  const end = new Promise<{ code: status; details: string }>((resolve) =>
    call.on("status", resolve),
  );
  const seen = begun(3);
  for (let i = 0; i < 3; i++) call.write(Buffer.from([i]));
  await seen;
  pass(MAX_AGE_MS + GRACE_MS + 250);
  gate.resolve({});
  const { code, details } = await end;
  expect([code, details]).toEqual([status.UNAVAILABLE, TOO_OLD]);
  expect(answers.length).toBe(3);
});

test("handlers that throw leave nothing in flight, and their streams' places are free", async () => {
  const { promise: failed, resolve } = Promise.withResolvers<ServiceError | null>();
  const seen = begun(2);
  client.makeUnaryRequest("/test/Unary", asIs, asIs, Buffer.from([1]), resolve);
  const call = client.makeBidiStreamRequest("/test/Stream", asIs, asIs);
  call.on("error", () => undefined);
  const end = new Promise<{ code: status }>((resolved) => call.on("status", resolved));
  call.write(Buffer.from([1]));
  await seen;
  expect(connection?.inFlight).toBe(2);
  let isIdle = false;
  void inFlight.idle(60_000).then(() => (isIdle = true));
  gate.reject(new IdmintError("TAG_NOT_FOUND", "it is not there"));
  expect([(await failed)?.code, (await end).code]).toEqual([status.NOT_FOUND, status.NOT_FOUND]);
  await until(() => isIdle && connection?.inFlight === 0);
});

test("a watch ends", async () => {
  const call = client.makeServerStreamRequest("/test/Watch", asIs, asIs, Buffer.from([1]));
  const end = new Promise<{ code: status }>((resolve) => call.on("status", resolve));
  call.on("error", () => undefined);
  await new Promise((resolve) => call.once("data", resolve));
  pass(MAX_AGE_MS + GRACE_MS + 250);
  expect((await end).code).toBe(status.UNAVAILABLE);
  expect(aborted).toEqual(["watch"]);
});
