// Servers on several databases whose addresses lead elsewhere at their start.
import { GenerateIdRequest, IdServiceService } from "@idmint/proto";
import { serverEnv } from "@idmint/testkit";
import { createTestDatabase } from "@idmint/testkit/postgres";
import { FREE, settingsOf } from "@idmint/testkit/store-suite";
import { TcpProxy } from "@idmint/testkit/tcp-proxy";
import { expect, onTestFinished, test } from "vitest";
import { loadConfig } from "../../../src/config/load.ts";
import type { Config } from "../../../src/config/table.ts";
import { startServer } from "../../../src/main/app.ts";
import { storeConfigOf } from "../../../src/main/stores.ts";
import {
  addToSpread,
  migrateStore,
  openStore,
  type SpreadConfig,
  storeStatus,
} from "../../../src/store/open-store.ts";
import { call, clientsOf } from "../../support.ts";

const TAGS = ["a", "b", "c", "d", "e", "f"];

function configOf(first: string, second: string, more: Record<string, string> = {}): Config {
  const flags = {
    "store-url": first,
    "store-more-urls": `b=${second}`,
    "allow-unsafe-store": "fsync,full_page_writes",
    "grpc-address": "127.0.0.1:0",
    "http-address": "127.0.0.1:0",
    "log-level": "silent",
    ...more,
  };
  return loadConfig({ env: serverEnv(), flags });
}

/** A store in two databases whose ids begin at `start`; `urls` are theirs. */
async function spreadAt(start: bigint) {
  const [first, second] = [await createTestDatabase(), await createTestDatabase()];
  onTestFinished(async () => {
    await first.close();
    await second.close();
  });
  const urls = [first.url, second.url] as const;
  const config = storeConfigOf(configOf(...urls)) as SpreadConfig;
  await migrateStore(config, { dryRun: false });
  await addToSpread(config);
  const store = await openStore(config);
  for (const tag of TAGS) {
    await store.createTag(settingsOf(tag));
    await store.advanceTag(tag, start, FREE);
  }
  await store.close();
  const { storeId } = await storeStatus(config);
  return { urls, storeId };
}

/** Ways to a server of PostgreSQL, whose databases are chosen by name. */
async function wayTo(url: string) {
  const { hostname: host, port } = new URL(url);
  const way = await TcpProxy.start({ host, port: Number(port) });
  onTestFinished(() => way.close());
  return way;
}

function through({ port }: TcpProxy, url: string): string {
  const its = new URL(url);
  its.hostname = "127.0.0.1";
  its.port = String(port);
  return its.href;
}

function idsOf(address: string): readonly Promise<bigint>[] {
  const { ids } = clientsOf(address);
  return TAGS.map(async (tag) => {
    const request = GenerateIdRequest.fromPartial({ tag });
    return (await call(ids, IdServiceService.generateId, request)).id;
  });
}

test("a server that is told one id of several databases does not start, and says what to add", async () => {
  const { urls, storeId } = await spreadAt(0n);
  const first = /^default: ([^;]+)/u.exec(storeId)?.[1] ?? "";
  await expect(startServer(configOf(...urls, { "store-expect-id": first }))).rejects.toMatchObject({
    reason: "INVALID_ARGUMENT",
    message: expect.stringMatching(/store\.expect_id.*leaves out b/u) as string,
  });
});

test("a server takes none of its further databases for another store's, restarted while its own is away", async () => {
  const ours = await spreadAt(0n);
  const other = await spreadAt(1_000_000n);
  const expected = { "store-expect-id": ours.storeId };
  // The second database is reached first, and it is the other store's.
  const mixed = configOf(ours.urls[0], other.urls[1], expected);
  const server = await startServer(mixed);
  onTestFinished(() => server.close());
  const answers = await Promise.allSettled(idsOf(server.grpcAddress));
  const ids = answers.flatMap((its) => (its.status === "fulfilled" ? [its.value] : []));
  const refusals = answers.filter((its) => its.status === "rejected");
  // The tags of the first database are answered, and none of the other store's.
  expect(Math.min(ids.length, refusals.length)).toBeGreaterThan(0);
  for (const id of ids) expect(id).toBeLessThan(1_000_000n);
  for (const { reason } of refusals) expect(reason).toMatchObject({ code: "UNAVAILABLE" });
  const right = await startServer(configOf(...ours.urls, expected));
  onTestFinished(() => right.close());
  for (const id of await Promise.all(idsOf(right.grpcAddress))) expect(id).toBeLessThan(1_000_000n);
});

test("a server that started with the further databases alone takes up the first one by itself", async () => {
  const { urls, storeId } = await spreadAt(0n);
  const way = await wayTo(urls[0]);
  const config = configOf(through(way, urls[0]), urls[1], { "store-expect-id": storeId });
  way.cut();
  const server = await startServer(config);
  onTestFinished(() => server.close());
  way.mend();
  await expect
    .poll(() => Promise.all(idsOf(server.grpcAddress)).catch((error: unknown) => error), {
      timeout: 15_000,
    })
    .toHaveLength(TAGS.length);
});

test("a server whose databases change places as the one that is away takes up the first one by itself", async () => {
  const { urls, storeId } = await spreadAt(0n);
  const ways = [await wayTo(urls[0]), await wayTo(urls[1])] as const;
  const [first, second] = [through(ways[0], urls[0]), through(ways[1], urls[1])];
  ways[0].cut();
  const server = await startServer(configOf(first, second, { "store-expect-id": storeId }));
  onTestFinished(() => server.close());
  ways[1].cut();
  ways[0].mend();
  const answered = async (): Promise<number> => {
    const answers = await Promise.allSettled(idsOf(server.grpcAddress));
    return answers.filter(({ status }) => status === "fulfilled").length;
  };
  await expect.poll(answered, { timeout: 15_000 }).toBeGreaterThan(0);
  ways[1].mend();
  await expect.poll(answered, { timeout: 15_000 }).toBe(TAGS.length);
});
