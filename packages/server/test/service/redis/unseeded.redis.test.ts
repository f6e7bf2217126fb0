// A generation that the store gave out and nobody gave Redis: its server died before it could, or gave up waiting for the
// store, which did what it was asked afterwards. Redis has no doubt then.
import { SNOWFLAKE_PRESETS } from "@idmint/core";
import type { TagSettings } from "@idmint/core/server";
import { MemoryStore } from "@idmint/testkit";
import { expect, test } from "vitest";
import { RedisWatch } from "../../../src/service/redis/watch.ts";
import { hashOf, ownRedis } from "../../store/redis/support.ts";
import { sleep } from "../../support.ts";
import { commitSoon, serverOn } from "./counting-servers.ts";
import { sequenceSettings } from "./redis-tags.ts";

const STEP = 20;
const orders = sequenceSettings("orders", { step: STEP, ceiling: 1_000_000n });
const timeOriginMs = Date.UTC(2026, 0);
const common = { description: "", order: "UNORDERED", ceiling: 2n ** 63n - 1n } as const;
const events: TagSettings = {
  ...common,
  name: "events",
  kind: { kind: "redis_snowflake", shard: 7, timeOriginMs, redisServer: "a" },
};
const leased: TagSettings = {
  ...common,
  name: "leased",
  kind: {
    kind: "snowflake",
    layout: SNOWFLAKE_PRESETS["41-10-12"],
    dataCenter: 0,
    clockPolicy: "REFUSE",
    clockWaitMs: 10,
    registry: "REDIS",
    redisServer: "a",
  },
};

/** Two servers that count for a tag in one Redis, and the generation that it has. */
async function start(settings: TagSettings) {
  const redis = await ownRedis();
  const store = new MemoryStore();
  await store.createTag(settings);
  const servers = [await serverOn(store, { a: redis }), await serverOn(store, { a: redis })];
  const { name: tag } = settings;
  return {
    store,
    servers,
    generation: async () => (await hashOf(redis, tag))["generation"],
    row: async () => (await store.getTags([tag]))[0]!,
    /** A new start is raised, and Redis never hears of it. */
    raiseForNobody: async () =>
      store.raise({ tag, by: 0n, atLeast: 0n, newGeneration: true, seenVersion: 0n }),
  };
}

test("sequences go on above the old maximum, in order and without a refusal", async () => {
  const { servers, generation, row, raiseForNobody } = await start(orders);
  const counters = servers.map((server) => server.sequence(orders));
  const ids: bigint[] = [];
  const take = async (): Promise<void> => {
    for (const counter of counters) ids.push((await counter.commit(1)).base);
  };
  await take();
  await raiseForNobody();
  for (let round = 0; round < 2 * STEP; round++) await take();
  expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => (a < b ? -1 : 1)));
  expect(await generation()).toBe(String((await row()).generation));
});

test("positions of a redis_snowflake go on when what was reserved before is used up", async () => {
  const { servers, generation, row, raiseForNobody } = await start(events);
  const counters = servers.map((server) => server.snowflake(events));
  const firsts: bigint[] = [];
  for (const counter of counters) firsts.push(await commitSoon(counter, 1));
  await raiseForNobody();
  const until = performance.now() + 4_000;
  while (performance.now() < until) {
    for (const counter of counters) firsts.push(await commitSoon(counter, 1));
    await sleep(20);
  }
  expect(new Set(firsts).size).toBe(firsts.length);
  expect(await generation()).toBe(String((await row()).generation));
});

test("worker ids in Redis are leased and renewed further on", async () => {
  const { servers, generation, row, raiseForNobody } = await start(leased);
  const registries = servers.map((server) => server.registry(leased));
  const wish = { tag: "leased", dataCenter: undefined, reserveAheadMs: 3_000 };
  const lease = (at: number, instance: string) =>
    registries[at]!.leaseWorker({ ...wish, instance });
  await lease(0, "one");
  await raiseForNobody();
  await sleep(3_100);
  expect((await lease(0, "two")).reservedUntilMs).toBeGreaterThan(Date.now());
  expect((await lease(1, "three")).reservedUntilMs).toBeGreaterThan(Date.now());
  expect(await generation()).toBe(String((await row()).generation));
});

test("who watches raises once for what Redis does not take, not every second", async () => {
  const { store, servers, row, raiseForNobody } = await start(orders);
  const [server] = servers;
  const counter = server!.sequence(orders);
  await counter.commit(1);
  await raiseForNobody();
  let nowMs = 0;
  const watch = new RedisWatch(
    {
      redisServer: server!.redisServers.get("a")!,
      isLeader: () => true,
      raises: server!.raises,
      getTags: (names) => store.getTags(names),
      clock: { now: () => nowMs },
      timers: { after: () => () => undefined },
      emit: (event) => server!.heard.push(event),
    },
    { raiseBelowMs: 60_000, raiseByMs: 60_000 },
  );
  const floors: bigint[] = [];
  for (let turn = 0; turn < 5; turn++) {
    await watch.turn();
    nowMs += 1_000;
    if (turn < 2) await counter.commit(2);
    floors.push((await row()).floor);
  }
  expect(new Set(floors).size).toBe(2);
  expect(server!.heard.filter(({ type }) => type === "redis-raised")).toEqual([]);
});
