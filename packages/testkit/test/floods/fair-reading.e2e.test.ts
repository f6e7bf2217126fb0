// How a server divides its work among connections, seen from outside: by the ids that its calls took.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Metadata } from "@grpc/grpc-js";
import { GenerateIdRequest, GenerateIdsRequest } from "@idmint/proto";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { framed } from "../../bench/lib/h2load.ts";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  firstHeaders,
  frame,
  FrameReader,
  LATER_HEADERS,
  PREFACE,
  TYPE,
} from "../../bench/lib/http2-frames.ts";
import { testDoor } from "../../src/doors.ts";
import { Fleet, type FleetServer } from "../../src/fleet/fleet.ts";
import { until } from "../../src/fleet/until.ts";
import { sqliteFile } from "../fleet-support.ts";

const PATIENT = { withinMs: 60_000 };
const NOTHING = Buffer.alloc(0);
let server: FleetServer;

beforeAll(async () => {
  const fleet = await Fleet.start({ servers: 1, storeUrl: `sqlite:${await sqliteFile()}` });
  server = fleet.first;
  await server.api.createTag({ name: "orders", min: 10_000_000, max: 100_000_000 });
  await server.api.id("orders");
  return () => fleet.close();
});

/** Frames by hand: what no client library sends. */
class Connection {
  readonly socket: Socket;
  readonly answered = new Set<number>();
  pongs = 0;
  #next = 1;

  private constructor(socket: Socket) {
    this.socket = socket;
    const reader = new FrameReader((type, flags, stream) => {
      if (type === TYPE.ping && (flags & ACK) !== 0) this.pongs++;
      if (type === TYPE.headers && (flags & END_STREAM) !== 0) this.answered.add(stream);
    });
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => reader.read(chunk));
  }

  static async open(settings: Uint8Array = NOTHING): Promise<Connection> {
    const [host = "", port = ""] = server.address.split(":");
    const socket = connect({ host, port: Number(port) });
    onTestFinished(() => {
      socket.destroy();
    });
    await once(socket, "connect");
    socket.write(Buffer.concat([PREFACE, frame(TYPE.settings, 0, 0, settings)]));
    return new Connection(socket);
  }

  /** Calls in one write, each followed by `more`. */
  call(
    method: string,
    message: Uint8Array,
    count: number,
    more?: (stream: number) => Buffer,
  ): void {
    const frames: Buffer[] = [];
    for (let call = 0; call < count; call++) {
      const stream = this.#next;
      const path = `/idmint.v1.IdService/${method}`;
      const headers = stream === 1 ? firstHeaders("test", path) : LATER_HEADERS;
      frames.push(
        frame(TYPE.headers, END_HEADERS, stream, headers),
        frame(TYPE.data, END_STREAM, stream, framed(message)),
        more?.(stream) ?? NOTHING,
      );
      this.#next += 2;
    }
    this.socket.write(Buffer.concat(frames));
  }

  send(type: number, stream: number, payload: Uint8Array): void {
    this.socket.write(frame(type, 0, stream, payload));
  }
}

const GENERATE_ID = GenerateIdRequest.encode({ tag: "orders", name: "" }).finish();
const reset = (stream: number): Buffer => frame(TYPE.reset, 0, stream, Buffer.from([0, 0, 0, 8]));

test("calls that are cancelled as they come are not begun, and their connection goes on at last", async () => {
  const before = await server.api.id("orders");
  const hostile = await Connection.open();
  const sent = 4_000;
  hostile.call("GenerateId", GENERATE_ID, sent, reset);
  hostile.send(TYPE.ping, 0, Buffer.alloc(8));
  hostile.call("GenerateId", GENERATE_ID, 1);
  const last = 2 * sent + 1;
  // Others are served meanwhile.
  for (let call = 0; call < 10; call++) await server.api.id("orders", 30_000);
  await until("its last call is answered", () => hostile.answered.has(last), PATIENT);
  expect(hostile.pongs).toBe(1);
  // A call is begun where its end came in a later packet than its beginning, which is oftener on a busy machine.
  const taken = Number((await server.api.id("orders")) - before);
  expect(taken).toBeLessThan(sent * 0.9);
});

test("a caller that cancels all its calls at once, again and again, keeps its connection", async () => {
  const { ids } = server.api;
  for (let round = 0; round < 5; round++) {
    const ended: (number | undefined)[] = [];
    const request = GenerateIdsRequest.create({ tag: "orders", count: 1_000, asList: true });
    const calls = Array.from({ length: 500 }, () =>
      ids.generateIds(request, (error) => ended.push(error?.code)),
    );
    const other = server.api.id("orders", 30_000);
    await new Promise(setImmediate);
    for (const call of calls) call.cancel();
    await other;
    await until("all calls ended", () => ended.length === calls.length, PATIENT);
    expect(new Set([undefined, 1, ...ended])).toEqual(new Set([undefined, 1]));
  }
  const options = { deadline: Date.now() + 30_000 };
  await new Promise<void>((resolve, reject) => {
    const request = { tag: "orders", name: "" };
    ids.generateId(request, new Metadata(), options, (error) =>
      error === null ? resolve() : reject(error),
    );
  });
});

test("no more calls are begun while a connection takes no answers, and all are answered when it does", async () => {
  // INITIAL_WINDOW_SIZE is 0: no byte of an answer may be sent.
  const slow = await Connection.open(Buffer.from([0, 4, 0, 0, 0, 0]));
  const before = await server.api.id("orders");
  const count = 10_000;
  const calls = 400;
  const request = GenerateIdsRequest.create({ tag: "orders", count, asList: true });
  slow.call("GenerateIds", GenerateIdsRequest.encode(request).finish(), calls);
  let last = before;
  await until(
    "no more ids are taken",
    async () => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      const now = await server.api.id("orders", 30_000);
      const isStill = last > before + 10n && now - last < count;
      last = now;
      return isStill;
    },
    PATIENT,
  );
  const begun = Math.floor(Number(last - before) / count);
  expect(begun).toBeLessThan(calls / 2);
  // grpc-js keeps the others back; the fast door has refused them.
  expect(slow.answered.size).toBe(testDoor() === "fast" ? calls - begun : 0);
  const much = Buffer.from([0x3f, 0xff, 0xff, 0xff]);
  slow.send(TYPE.settings, 0, Buffer.concat([Buffer.from([0, 4]), much]));
  slow.send(TYPE.window, 0, much);
  await until("all are answered", () => slow.answered.size === calls, PATIENT);
});
