// Whole servers whose snowflakes have their worker ids in Redis, over a store in memory.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { decode, SNOWFLAKE_PRESETS, timeOf } from "@idmint/core";
import {
  AdvanceTagRequest,
  ListWorkersRequest,
  MoveTagRequest,
  TagServiceService,
  WorkerRegistry,
  WorkerServiceService,
} from "@idmint/proto";
import { MemoryStore } from "@idmint/testkit";
import { expect, onTestFinished, test } from "vitest";
import { createSnowflake, lease, takeIds } from "../../../snowflake-support.ts";
import { ownRedis } from "../../../store/redis/support.ts";
import { call, refusalOf, sleep, startTest, type TestServer, until } from "../../../support.ts";

const LAYOUT = SNOWFLAKE_PRESETS["41-10-12"];
const IN_REDIS = { registry: WorkerRegistry.REDIS };

async function startTwo(flags: Record<string, string>): Promise<[TestServer, TestServer]> {
  const store = new MemoryStore();
  const one = await startTest({ flags, store });
  const other = new MemoryStore({ database: store.database });
  return [one, await startTest({ flags, store: other })];
}

/** Between the calls of a loop, which would take all of the machine else. */
const PAUSE_MS = 5;

/** Ids of both at the same moment, asked for until each has answered. */
async function takeFromBoth(servers: readonly TestServer[], withinMs: number): Promise<bigint[]> {
  await sleep(PAUSE_MS);
  const taken = servers.map(async (server) => {
    let ids: bigint[] = [];
    await until(async () => {
      ids = await takeIds(server, "t", 200).catch(() => []);
      return ids.length > 0;
    }, withinMs);
    return ids;
  });
  return (await Promise.all(taken)).flat();
}

test("ids of two servers stay different while Redis is emptied and their tag moves", async () => {
  const [a, b] = [await ownRedis(), await ownRedis()];
  const servers = await startTwo({ "redis-urls": `a=${a.url},b=${b.url}` });
  const [one] = servers;
  const tag = await createSnowflake(one, "t", IN_REDIS);
  const redisServerOf = ({ kind }: typeof tag): string =>
    kind?.$case === "snowflake" ? kind.value.redisServer : "";
  const from = redisServerOf(tag);
  expect(["a", "b"]).toContain(from);
  const ids = await takeFromBoth(servers, 2_000);
  expect(new Set(ids.map((id) => decode(LAYOUT, id).worker))).toEqual(new Set([0, 1]));
  await (from === "a" ? a : b).command("FLUSHALL");
  const end = Date.now() + 4_500;
  while (Date.now() < end) ids.push(...(await takeFromBoth(servers, 15_000)));
  const to = from === "a" ? "b" : "a";
  const move = MoveTagRequest.fromPartial({ name: "t", redisServer: to });
  const moved = await call(one.tags, TagServiceService.moveTag, move);
  expect(moved.tag === undefined ? "" : redisServerOf(moved.tag)).toBe(to);
  const later = Date.now() + 4_500;
  while (Date.now() < later) ids.push(...(await takeFromBoth(servers, 15_000)));
  expect(new Set(ids).size).toBe(ids.length);
  const request = ListWorkersRequest.fromPartial({ tag: "t" });
  const { workers } = await call(one.workers, WorkerServiceService.listWorkers, request);
  expect(workers.map(({ workerId, leased }) => [workerId, leased])).toEqual([
    [0, true],
    [1, true],
  ]);
}, 60_000);

test("an operator's floor holds for worker ids in Redis, and layouts too large are refused", async () => {
  const redis = await ownRedis();
  const [one, two] = await startTwo({ "redis-urls": redis.url });
  await createSnowflake(one, "t", IN_REDIS);
  const leased = await lease(one, { tag: "t", instance: "sdk" });
  const until = leased.reservedUntilMs + 8_000n;
  const floor = (until - BigInt(LAYOUT.timeOriginMs)) << 22n;
  const advance = AdvanceTagRequest.fromPartial({ name: "t", floor, allowLargeRaise: true });
  await call(one.tags, TagServiceService.advanceTag, advance);
  const next = await lease(one, { tag: "t", instance: "sdk" });
  expect(next.notBeforeMs).toBeGreaterThan(until);
  expect((await takeIds(one, "t", 10, 20_000)).every((id) => id > floor)).toBe(true);
  const layout = { timeBits: 30, workerBits: 17, sequenceBits: 10, timeUnit: { seconds: 1n } };
  const tooLarge = await refusalOf(createSnowflake(two, "large", { ...IN_REDIS, layout }));
  expect(tooLarge.fields[0]?.field).toBe("tag.snowflake.layout.worker_bits");
  const extended = {
    layout: { timeBits: 41, workerBits: 5, sequenceBits: 12, extensionBits: 2 },
    clockPolicy: 2 as const,
  };
  const refused = await refusalOf(createSnowflake(two, "extended", { ...IN_REDIS, ...extended }));
  expect(refused.fields[0]?.field).toBe("tag.snowflake.clock_policy");
}, 60_000);

/** How far ahead of the clock ids of now are, in milliseconds. */
function leadOf(ids: readonly bigint[]): number {
  return Math.max(...ids.map((id) => timeOf(LAYOUT, decode(LAYOUT, id).tick))) - Date.now();
}

test("a minute that one server keeps is no time that others lose when Redis is emptied", async () => {
  const redis = await ownRedis();
  const store = new MemoryStore();
  const folder = mkdtempSync(path.join(tmpdir(), "idmint-kept-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const flags = { "redis-urls": redis.url };
  const kept = { ...flags, "snowflake-cache-file": path.join(folder, "leases") };
  const servers = [await startTest({ flags: kept, store })];
  for (let other = 0; other < 2; other++) {
    const handle = new MemoryStore({ database: store.database });
    servers.push(await startTest({ flags, store: handle }));
  }
  await createSnowflake(servers[0]!, "t", IN_REDIS);
  const ids = await takeFromBoth(servers, 5_000);
  const leads: number[] = [];
  for (let round = 0; round < 3; round++) {
    await redis.command("FLUSHALL");
    // Leases that Redis forgot are lost at their next renewal.
    const end = Date.now() + 4_000;
    while (Date.now() < end) {
      const asked = performance.now();
      ids.push(...(await takeFromBoth(servers, 15_000)));
      // Nobody waits until the minute is over.
      expect(performance.now() - asked).toBeLessThan(10_000);
    }
    leads.push(leadOf(ids.slice(-100)));
  }
  expect(new Set(ids).size).toBe(ids.length);
  // The first loss puts ids ahead by what was kept, and the others add no minute to it.
  expect(Math.max(...leads)).toBeLessThan(62_000 + 2 * 15_000);
}, 90_000);
