import { spawnSync } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect,
  createServer,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { duplexPair } from "node:stream";
import { fileURLToPath } from "node:url";
import { type sendUnaryData, Server, ServerCredentials, type ServerUnaryCall } from "@grpc/grpc-js";
import { afterEach, expect, test } from "vitest";
import { applyStreamRingCure, gcCures, verifyStreamRingCure } from "../../src/grpc/gc-cures.ts";
import { guardSessions } from "../../src/grpc/sessions.ts";
import { StreamRing } from "../../src/grpc/stream-ring.ts";
import { applyFlagCures } from "../../src/grpc/v8-flags.ts";

const cure = { session: applyStreamRingCure, stream: (_: unknown, begin: () => void) => begin() };

const cleanUps: (() => void)[] = [];
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp();
});

function stateOf(session: object): { streams: StreamRing<object>; pendingStreams: object } {
  const key = Object.getOwnPropertySymbols(session).find(
    (symbol) => symbol.description === "state",
  );
  if (key === undefined) throw new Error("the session has no state");
  return Reflect.get(session, key) as ReturnType<typeof stateOf>;
}

/** A server whose sessions have the ring, and a client of it. */
async function serve(
  onServer: (server: Http2Server) => void,
): Promise<{ client: ClientHttp2Session; session: ServerHttp2Session }> {
  const server = createServer({ settings: { maxConcurrentStreams: 5_000 } });
  const sessions = once(server, "session") as Promise<[ServerHttp2Session]>;
  server.prependListener("session", (session) => {
    expect(applyStreamRingCure(session)).toBe(true);
  });
  onServer(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  cleanUps.push(() => {
    client.destroy();
    server.close();
  });
  await once(client, "connect");
  const [session] = await sessions;
  return { client, session };
}

function call(client: ClientHttp2Session, path: string, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const stream = client.request({ ":method": "POST", ":path": path });
    let text = "";
    stream.setEncoding("utf8");
    stream.on("data", (chunk: string) => (text += chunk));
    stream.once("end", () => resolve(text));
    stream.once("error", reject);
    stream.end(body);
  });
}

const ACTIVE = { pretenuring: "active", heapGrowth: "active" };

test("V8 takes the flags, and says so by its tag", () => {
  expect(applyFlagCures()).toEqual(ACTIVE);
  expect(gcCures()).toMatchObject(ACTIVE);
});

test("the flags are set in silence, and are active too where the command line has them", () => {
  const file = fileURLToPath(new URL("../../src/grpc/v8-flags.ts", import.meta.url));
  const code = `import { applyFlagCures as apply } from ${JSON.stringify(file)}; console.log(JSON.stringify([apply(), apply()]));`;
  for (const flags of [
    [],
    ["--no-allocation-site-pretenuring"],
    ["--allocation-site-pretenuring"],
    ["--heap-growing-percent=50"],
  ]) {
    const args = [...flags, "-C", "idmint-source", "--input-type=module", "-e", code];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect([stdout, stderr]).toEqual([`${JSON.stringify([ACTIVE, ACTIVE])}\n`, ""]);
  }
});

test("the ring is tried before it is trusted", async () => {
  expect(await verifyStreamRingCure()).toBe("active");
  expect(gcCures().streamRing).toBe("active");
});

test("twenty thousand calls pass through the ring, and none stays in it", async () => {
  const { client, session } = await serve((server) => {
    server.on("stream", (stream) => {
      stream.setEncoding("utf8");
      let body = "";
      stream.on("data", (chunk: string) => (body += chunk));
      stream.once("end", () => {
        stream.respond({ ":status": 200 });
        stream.end(body);
      });
    });
  });
  const { streams } = stateOf(session);
  expect(streams).toBeInstanceOf(StreamRing);
  let next = 0;
  let wrong = 0;
  const caller = async (): Promise<void> => {
    while (next < 20_000) {
      const body = String(next++);
      if ((await call(client, "/echo", body)) !== body) wrong++;
    }
  };
  await Promise.all(Array.from({ length: 200 }, caller));
  expect(wrong).toBe(0);
  await expect.poll(() => streams.size).toBe(0);
}, 120_000);

test("two thousand calls at once, answered in reverse order, each get their own answer", async () => {
  const waiting: (() => void)[] = [];
  const count = 2_000;
  const { client, session } = await serve((server) => {
    server.on("stream", (stream, headers) => {
      waiting.push(() => {
        stream.respond({ ":status": 200 });
        stream.end(headers[":path"]);
      });
      if (waiting.length === count) {
        expect(stateOf(session).streams.size).toBe(count);
        for (const answer of waiting.toReversed()) answer();
      }
    });
  });
  const paths = Array.from({ length: count }, (_, i) => `/${i}`);
  expect(await Promise.all(paths.map((path) => call(client, path, "")))).toEqual(paths);
});

test("a session that is destroyed ends all of its streams", async () => {
  const ended: number[] = [];
  const count = 500;
  let arrived = 0;
  const { client, session } = await serve((server) => {
    server.on("stream", (stream) => {
      stream.on("error", () => undefined);
      stream.once("close", () => ended.push(stream.id ?? 0));
      if (++arrived === count) session.destroy();
    });
  });
  client.on("error", () => undefined);
  const calls = Array.from({ length: count }, () => call(client, "/", ""));
  await Promise.allSettled(calls);
  await expect.poll(() => ended.length).toBe(count);
  expect(stateOf(session).streams.size).toBe(0);
});

test("a connection that breaks ends all of its streams, and the session", async () => {
  let closed = 0;
  const count = 100;
  const { client, session } = await serve((server) => {
    let arrived = 0;
    server.on("stream", (stream) => {
      stream.on("error", () => undefined);
      stream.once("close", () => closed++);
      if (++arrived === count) client.socket.destroy();
    });
  });
  client.on("error", () => undefined);
  await Promise.allSettled(Array.from({ length: count }, () => call(client, "/", "")));
  await expect.poll(() => closed).toBe(count);
  await expect.poll(() => session.destroyed).toBe(true);
});

test("a graceful close waits for the call that is open", async () => {
  let answer: (() => void) | undefined;
  const { client, session } = await serve((server) => {
    server.on("stream", (stream) => {
      answer = () => {
        stream.respond({ ":status": 200 });
        stream.end("late");
      };
    });
  });
  const late = call(client, "/", "");
  await expect.poll(() => answer).toBeDefined();
  session.close();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(session.destroyed).toBe(false);
  answer?.();
  expect(await late).toBe("late");
  await expect.poll(() => session.destroyed).toBe(true);
});

test("a session whose streams are kept elsewhere, or hold something already, is left as it is", async () => {
  const { session } = await serve(() => undefined);
  // The ring is in place, which is not what this code knows: it is not put there twice.
  expect(applyStreamRingCure(session)).toBe(false);
  expect(applyStreamRingCure({} as ServerHttp2Session)).toBe(false);
  const strange = { [Symbol("state")]: { streams: {}, pendingStreams: new Set() } };
  expect(applyStreamRingCure(strange as unknown as ServerHttp2Session)).toBe(false);
  const busy = { streams: new Map([[1, {}]]), pendingStreams: new Set() };
  const inUse = { [Symbol("state")]: busy };
  expect(applyStreamRingCure(inUse as unknown as ServerHttp2Session)).toBe(false);
  expect(busy.streams).toBeInstanceOf(Map);
});

test("a server of grpc-js gets the ring for each of its sessions", async () => {
  const server = new Server();
  expect(guardSessions(server, cure)).toBe(true);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  let cured: object | undefined;
  server.addService(
    {
      call: {
        path: "/test/Call",
        requestStream: false,
        responseStream: false,
        requestSerialize: (value: Buffer) => value,
        requestDeserialize: (bytes: Buffer) => bytes,
        responseSerialize: (value: Buffer) => value,
        responseDeserialize: (bytes: Buffer) => bytes,
      },
    },
    {
      call: (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>) => {
        done(null, call.request);
      },
    },
  );
  const created = (message: unknown): void => {
    const { stream } = message as { stream: ServerHttp2Stream };
    if (stream.session !== undefined) cured = stateOf(stream.session).streams;
  };
  subscribe("http2.server.stream.created", created);
  cleanUps.push(() => {
    unsubscribe("http2.server.stream.created", created);
    server.forceShutdown();
  });
  const [near, far] = duplexPair();
  injector.injectConnection(far);
  const client = connect("http://in-memory", { createConnection: () => near });
  cleanUps.push(() => {
    client.destroy();
  });
  const stream = client.request({
    ":method": "POST",
    ":path": "/test/Call",
    "content-type": "application/grpc",
    te: "trailers",
  });
  const message = Buffer.from([0, 0, 0, 0, 3, 1, 2, 3]);
  stream.end(message);
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  const [trailers] = (await once(stream, "trailers")) as [Record<string, string>];
  expect(trailers["grpc-status"]).toBe("0");
  expect(Buffer.concat(chunks)).toEqual(message);
  expect(cured).toBeInstanceOf(StreamRing);
});

test("a server that makes its sessions in another way is left as it is", () => {
  expect(guardSessions({} as Server, cure)).toBe(false);
});
