import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import {
  type GetNodeTimeResponse,
  NodeServiceService,
  type GetNodeTimeRequest,
} from "@idmint/proto";
import { MemoryDatabase, MemoryStore } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { GrpcPeerClocks } from "../../../src/grpc/peers/clocks.ts";
import { createSnowflake, takeIds } from "../../snowflake-support.ts";
import {
  createTag,
  generateId,
  refusalOf,
  startTest,
  type TestServer,
  until,
} from "../../support.ts";

/** A peer whose clock is off. */
class Peer {
  readonly server = new Server();
  offsetMs: number;
  asked = 0;
  port = 0;

  constructor(offsetMs: number) {
    this.offsetMs = offsetMs;
  }

  static async start(offsetMs: number): Promise<Peer> {
    const peer = new Peer(offsetMs);
    peer.server.addService(
      { getNodeTime: NodeServiceService.getNodeTime },
      {
        getNodeTime: (
          _call: { request: GetNodeTimeRequest },
          answer: (error: null, response: GetNodeTimeResponse) => void,
        ) => {
          peer.asked++;
          const time = new Date(Date.now() + peer.offsetMs);
          answer(null, { time, nodeId: randomUUID() });
        },
      },
    );
    peer.port = await new Promise((resolve, reject) => {
      peer.server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
        if (error === null) resolve(port);
        else reject(error);
      });
    });
    onTestFinished(() => peer.server.forceShutdown());
    return peer;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }
}

function eventsOf(it: TestServer, type: string): object[] {
  return it.events.filter((event) => event.type === type);
}

test("a server whose clock is off its peers' refuses snowflakes, takes itself out, and comes back", async () => {
  const peers = [await Peer.start(3_600_000), await Peer.start(3_600_000)];
  const flags = { "node-peers": peers.map(({ address }) => address).join(",") };
  const it = await startTest({ flags });
  expect(eventsOf(it, "clock-refused")).toMatchObject([{ tag: undefined, why: "off-peers" }]);
  await createSnowflake(it, "flakes");
  await createTag(it, "plain");
  const { reason, code, metadata, retryAfterMs } = await refusalOf(generateId(it, "flakes"));
  expect({ reason, code }).toEqual({ reason: "CLOCK_NOT_CONFIRMED", code: "UNAVAILABLE" });
  expect(Number(metadata["drift_ms"])).toBeLessThan(-3_590_000);
  expect(retryAfterMs).toBeGreaterThan(0);
  expect(it.server.node.ready).toBe(false);
  expect(it.server.node.status().state).toBe("DEGRADED");
  // Other kinds need no clock, for those who still ask.
  expect((await generateId(it, "plain")).id).toBe(1n);
  for (const peer of peers) peer.offsetMs = 0;
  await until(() => it.server.node.ready);
  expect(eventsOf(it, "clock-recovered")).toHaveLength(1);
  expect(await takeIds(it, "flakes", 5)).toHaveLength(5);
});

test("a clock that is off keeps nothing but snowflakes from being served", async () => {
  const peer = await Peer.start(-3_600_000);
  const it = await startTest({ flags: { "node-peers": peer.address } });
  await createTag(it, "plain");
  expect((await generateId(it, "plain")).id).toBe(1n);
  expect(it.server.node.ready).toBe(true);
});

test("peers that do not answer keep no server from starting", async () => {
  const silent = await Peer.start(3_600_000);
  silent.server.forceShutdown();
  const it = await startTest({ flags: { "node-peers": silent.address } });
  await createSnowflake(it, "flakes");
  expect(await takeIds(it, "flakes", 5)).toHaveLength(5);
});

test("peers are asked eight at a time, and a server's own answer says nothing", async () => {
  const it = await startTest();
  const peers = [it.server.grpcAddress];
  const known = () => peers;
  const clock = { now: () => performance.now() };
  const { nodeId } = it.server.node.status();
  expect(await new GrpcPeerClocks({ peers, known, tls: undefined, nodeId }, clock).ask()).toEqual(
    [],
  );
  const [seen] = await new GrpcPeerClocks(
    { peers, known, tls: undefined, nodeId: "b" },
    clock,
  ).ask();
  const drift = (seen?.timeMs ?? 0) + clock.now() - (seen?.at ?? 0) - Date.now();
  expect(Math.abs(drift)).toBeLessThan(1_000);
  const many = await Promise.all(Array.from({ length: 10 }, () => Peer.start(0)));
  const all = {
    peers: [],
    known: () => many.map(({ address }) => address),
    tls: undefined,
    nodeId,
  };
  const clocks = new GrpcPeerClocks(all, clock);
  expect(await clocks.ask()).toHaveLength(8);
  expect(await clocks.ask()).toHaveLength(8);
  expect(many.map(({ asked }) => asked).toSorted((a, b) => a - b)).toEqual([
    1, 1, 1, 1, 2, 2, 2, 2, 2, 2,
  ]);
});

function cacheFile(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-clocks-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return path.join(folder, "leases");
}

test("a server with a cache file goes on with its worker id, and reports its time in it", async () => {
  const database = new MemoryDatabase();
  const flags = { "snowflake-cache-file": cacheFile(), instance: "one" };
  const first = await startTest({ flags, store: new MemoryStore({ database }) });
  await createSnowflake(first, "flakes");
  const before = await takeIds(first, "flakes", 5);
  await first.server.close();
  const second = await startTest({ flags, store: new MemoryStore({ database }) });
  const after = await takeIds(second, "flakes", 5);
  expect(eventsOf(second, "lease-resumed")).toMatchObject([{ tag: "flakes", isConfirmed: true }]);
  expect(after[0]).toBeGreaterThan(before[4] ?? 0n);
  // Far less than the minute that is reserved.
  expect((after[0] ?? 0n) >> 22n).toBeLessThan(((before[0] ?? 0n) >> 22n) + 10_000n);
});

test("two servers do not share a cache file", async () => {
  const flags = { "snowflake-cache-file": cacheFile() };
  await startTest({ flags });
  await expect(startTest({ flags })).rejects.toThrow(
    /^INVALID_ARGUMENT: snowflake.cache_file names a file that another process uses/,
  );
});
