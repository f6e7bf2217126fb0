// Servers on one SQLite file, whose floor a hand sets back while they run; accepted without a gap.
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  AllocateSegmentRequest,
  CreateTagRequest,
  IdServiceService,
  TagServiceService,
} from "@idmint/proto";
import { doorEnv } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../../src/config/load.ts";
import { startServer } from "../../../src/main/app.ts";
import { makeStore, storeConfigOf } from "../../../src/main/stores.ts";
import { acceptStore } from "../../../src/store/open-store.ts";
import { sqlInAnotherProcess } from "../children.ts";
import { call, clientsOf } from "../../support.ts";

async function fileOfTest(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "idmint-claims-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return path.join(folder, "idmint.db");
}

async function started(file: string) {
  const flags = {
    "store-url": `sqlite:${file}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
    "drain-time": "500ms",
  };
  const config = loadConfig({ env: doorEnv(), flags });
  return {
    config,
    start: async () => {
      const server = await startServer(config);
      onTestFinished(() => server.close());
      return { server, ...clientsOf(server.grpcAddress) };
    },
  };
}

type Server = Awaited<ReturnType<Awaited<ReturnType<typeof started>>["start"]>>;

/** Takes `count` ids in segments; answers all of them, and waits out what passes by itself. */
async function taken({ ids }: Server, count: number): Promise<bigint[]> {
  const all: bigint[] = [];
  while (all.length < count) {
    const request = AllocateSegmentRequest.fromPartial({ tag: "orders", count: 500 });
    const answer = await call(ids, IdServiceService.allocateSegment, request).catch(
      (error: unknown) => {
        if (!/SEGMENT_NOT_READY|STORE_UNAVAILABLE|STORE_EPOCH_CHANGED/u.test(String(error))) {
          throw error;
        }
      },
    );
    if (answer === undefined) await new Promise((resolve) => setTimeout(resolve, 100));
    for (const { base, increment, count: length } of answer?.segments ?? []) {
      for (let at = 0n; at < BigInt(length); at++) all.push(base + at * BigInt(increment));
    }
  }
  return all;
}

test(
  "no id comes again after an accept without a gap, beside the server that was granted them",
  { timeout: 60_000 },
  async () => {
    const file = await fileOfTest();
    const { config, start } = await started(file);
    await makeStore(config);
    const first = await start();
    const settings = { min: 1_000, max: 1_000 };
    const tag = { name: "orders", kind: { $case: "segment" as const, value: settings } };
    await call(first.tags, TagServiceService.createTag, CreateTagRequest.fromPartial({ tag }));
    const before = await taken(first, 6_000);
    sqlInAnotherProcess(file, "UPDATE tag SET floor = 10 WHERE name = 'orders'");
    const report = await acceptStore(storeConfigOf(config), 0n);
    expect(report.claims).toMatchObject({ raised: 1, servers: [{ told: "all" }] });
    const fresh = await start();
    const after = (await Promise.all([taken(first, 2_000), taken(fresh, 2_000)])).flat();
    expect(new Set([...before, ...after]).size).toBe(before.length + after.length);
  },
);

test(
  "a folder put back beside two servers is accepted above what both of them were granted",
  { timeout: 60_000 },
  async () => {
    const file = await fileOfTest();
    const { config, start } = await started(file);
    await makeStore(config);
    const servers = [await start(), await start()] as const;
    const [first] = servers;
    const settings = { min: 1_000, max: 1_000 };
    const tag = { name: "orders", kind: { $case: "segment" as const, value: settings } };
    await call(first.tags, TagServiceService.createTag, CreateTagRequest.fromPartial({ tag }));
    sqlInAnotherProcess(file, "PRAGMA wal_checkpoint(TRUNCATE)");
    const beside = ["", ".witness", ".witness.next"];
    for (const suffix of beside) await cp(`${file}${suffix}`, `${file}${suffix}.saved`);
    const before = (await Promise.all(servers.map((server) => taken(server, 4_000)))).flat();
    for (const suffix of ["-wal", "-shm"]) await rm(`${file}${suffix}`, { force: true });
    for (const suffix of beside) {
      await rm(`${file}${suffix}`, { force: true });
      await cp(`${file}${suffix}.saved`, `${file}${suffix}`);
    }
    const report = await acceptStore(storeConfigOf(config), 0n);
    expect(report.claims.servers.filter(({ told }) => told === "all")).toHaveLength(2);
    const fresh = await start();
    const after = (
      await Promise.all([...servers, fresh].map((server) => taken(server, 2_000)))
    ).flat();
    expect(new Set([...before, ...after]).size).toBe(before.length + after.length);
  },
);
