// Two stores on files, whose servers use one Redis for tags of the same names.
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  CreateTagRequest,
  LeaseWorkerRequest,
  MoveTagRequest,
  type DeepPartial,
  SequenceBackend,
  type Tag,
  TagServiceService,
  WorkerRegistry,
  WorkerServiceService,
} from "@idmint/proto";
import { serverEnv } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { hashOf, ownRedis } from "../../store/redis/support.ts";
import { loadConfig } from "../../../src/config/load.ts";
import type { Config } from "../../../src/config/table.ts";

import { acceptStore } from "../../../src/store/open-store.ts";
import { startServer } from "../../../src/main/app.ts";
import { makeStore, storeConfigOf } from "../../../src/main/stores.ts";
import { call, clientsOf, generateId, Refusal, refusalOf } from "../../support.ts";

type Kind = NonNullable<DeepPartial<Tag>["kind"]>;

const sequence: Kind = { $case: "sequence", value: { backend: SequenceBackend.REDIS } };
const events: Kind = { $case: "redisSnowflake", value: {} };

async function folderOfTest(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "idmint-two-stores-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

function configOf(redisUrl: string, file: string): Config {
  const flags = {
    "redis-urls": redisUrl,
    "store-url": `sqlite:${file}`,
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
    "drain-time": "500ms",
  };
  return loadConfig({ env: serverEnv(), flags });
}

async function serverOf(config: Config) {
  const server = await startServer(config);
  onTestFinished(() => server.close());
  return { server, ...clientsOf(server.grpcAddress) };
}

/** A server with a store of its own. */
async function storeOn(redisUrl: string): Promise<Server> {
  const config = configOf(redisUrl, path.join(await folderOfTest(), "idmint.db"));
  await makeStore(config);
  return serverOf(config);
}

type Server = Awaited<ReturnType<typeof serverOf>>;

async function create({ tags }: Server, name: string, kind: Kind): Promise<void> {
  const request = CreateTagRequest.fromPartial({ tag: { name, kind } });
  await call(tags, TagServiceService.createTag, request);
}

/** The id, or why there was none. */
async function idOrReason(server: Server, tag: string): Promise<bigint | string> {
  try {
    return (await generateId(server, tag)).id;
  } catch (error) {
    if (error instanceof Refusal) return error.reason;
    throw error;
  }
}

function lease({ workers }: Server) {
  const request = LeaseWorkerRequest.fromPartial({ tag: "nodes", instance: "i" });
  return call(workers, WorkerServiceService.leaseWorker, request);
}

test("by turns: the store that came first counts on without a gap, and the other one is refused", async () => {
  const redis = await ownRedis();
  const [one, other] = [await storeOn(redis.url), await storeOn(redis.url)];
  for (const server of [one, other]) await create(server, "orders", sequence);
  for (const server of [other, one]) await create(server, "events", events);
  expect((await generateId(one, "orders")).id).toBe(1n);
  await generateId(other, "events");
  for (let round = 2n; round <= 30n; round++) {
    expect(await idOrReason(other, "orders")).toBe("STORE_REFUSED");
    expect((await generateId(one, "orders")).id).toBe(round);
    expect(await idOrReason(one, "events")).toBe("STORE_REFUSED");
    expect(await idOrReason(other, "events")).toBeTypeOf("bigint");
  }
  const refusal = await refusalOf(generateId(other, "orders"));
  const { store } = await hashOf(redis, "orders");
  expect(refusal.code).toBe("FAILED_PRECONDITION");
  expect(refusal.message).toContain(`its id is ${store}`);
  // The way out, when the first store is gone.
  await one.server.close();
  await redis.command("DEL", "idmint:{orders}");
  expect(await idOrReason(other, "orders")).toBeTypeOf("bigint");
});

test("at once: of two stores one gets the tag, and the ids of each are its own", async () => {
  const redis = await ownRedis();
  const both = [await storeOn(redis.url), await storeOn(redis.url)] as const;
  for (let round = 0; round < 30; round++) {
    const tag = `orders-${round}`;
    await Promise.all(both.map((server) => create(server, tag, sequence)));
    const answers = await Promise.all(
      both.map((server) => Promise.all([1, 2, 3].map(() => idOrReason(server, tag)))),
    );
    const winners = answers.filter((its) => its.some((one) => typeof one === "bigint"));
    expect(winners, tag).toHaveLength(1);
    expect(winners[0]?.toSorted(), tag).toEqual([1n, 2n, 3n]);
    const losers = answers.filter((its) => its !== winners[0]);
    expect(new Set(losers.flat()), tag).toEqual(new Set(["STORE_REFUSED"]));
  }
});

test("a copy that was accepted as a store of its own does not count on where its original does", async () => {
  const redis = await ownRedis();
  const files = [await folderOfTest(), await folderOfTest()].map((at) =>
    path.join(at, "idmint.db"),
  );
  const [config, copied] = files.map((file) => configOf(redis.url, file)) as [Config, Config];
  await makeStore(config);
  const first = await serverOf(config);
  await create(first, "orders", sequence);
  expect((await generateId(first, "orders")).id).toBe(1n);
  await first.server.close();
  await cp(path.dirname(files[0]!), path.dirname(files[1]!), { recursive: true });
  await acceptStore(storeConfigOf(copied), 0n, { newStore: true });
  const copy = await serverOf(copied);
  expect(await idOrReason(copy, "orders")).toBe("STORE_REFUSED");
  const original = await serverOf(config);
  for (let id = 2n; id < 12n; id++) {
    expect((await generateId(original, "orders")).id).toBe(id);
    expect(await idOrReason(copy, "orders")).toBe("STORE_REFUSED");
  }
});

test("a tag that another store counts is moved to another Redis by force, and counts there", async () => {
  const [a, b] = [await ownRedis(), await ownRedis()];
  const urls = `a=${a.url},b=${b.url}`;
  const [one, other] = [await storeOn(urls), await storeOn(urls)];
  for (const server of [one, other]) await create(server, "orders", sequence);
  await generateId(one, "orders");
  const redisServer = "store" in (await hashOf(a, "orders")) ? "b" : "a";
  const move = (force: boolean) => {
    const request = MoveTagRequest.fromPartial({ name: "orders", redisServer, force });
    return call(other.tags, TagServiceService.moveTag, request);
  };
  expect(await refusalOf(move(false))).toMatchObject({ reason: "STORE_REFUSED" });
  await move(true);
  expect(await idOrReason(other, "orders")).toBe(1n);
  expect(await idOrReason(one, "orders")).toBe(2n);
});

test("worker ids of two stores: leased by one, refused to the other", async () => {
  const redis = await ownRedis();
  const [one, other] = [await storeOn(redis.url), await storeOn(redis.url)];
  const nodes: Kind = { $case: "snowflake", value: { registry: WorkerRegistry.REDIS } };
  for (const server of [one, other]) await create(server, "nodes", nodes);
  expect(await lease(one)).toMatchObject({ workerId: 0 });
  expect(await refusalOf(lease(other))).toMatchObject({ reason: "STORE_REFUSED" });
  expect(await lease(one)).toMatchObject({ workerId: 0 });
});
