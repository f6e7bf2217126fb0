// Servers that tell each other of changed tags, through a real Redis; over a store in memory.
import { TagServiceService } from "@idmint/proto";
import { MemoryStore } from "@idmint/testkit";
import type { RedisServer } from "@idmint/testkit/redis";
import { expect, onTestFinished, test } from "vitest";
import { TagSignals } from "../../../src/store/redis/tag-signals.ts";
import { ownRedis } from "./support.ts";
import {
  call,
  createTag,
  generateId,
  sleep,
  startTest,
  type TestServer,
  until,
} from "../../support.ts";

/** Two servers on one store, that poll it as seldom as is allowed. */
async function pair(redis: RedisServer): Promise<readonly [TestServer, TestServer]> {
  const flags = { "redis-urls": redis.url, "poll-interval": "1s" };
  const store = new MemoryStore();
  const one = await startTest({ flags, store });
  const other = new MemoryStore({ database: store.database });
  const two = await startTest({ flags, store: other });
  await until(async () => (await listeners(redis)) === 2);
  return [one, two];
}

async function listeners(redis: RedisServer): Promise<number> {
  const channel = "idmint:signal:all:tags-changed:given";
  const answer = (await redis.command("PUBSUB", "NUMSUB", channel)) as unknown[];
  return Number(answer[1]);
}

async function setPaused({ tags }: TestServer, name: string, isPaused: boolean): Promise<void> {
  const method = isPaused ? TagServiceService.pauseTag : TagServiceService.resumeTag;
  await call(tags, method, { name, etag: "", validateOnly: false });
}

async function isRefused(server: TestServer, tag: string): Promise<boolean> {
  return generateId(server, tag).then(
    () => false,
    () => true,
  );
}

/** How long the other server takes to notice that a tag is paused or resumed, each time. */
async function noticed(one: TestServer, two: TestServer, times: number): Promise<number[]> {
  const took: number[] = [];
  for (let at = 0; at < times; at++) {
    const isPaused = at % 2 === 0;
    await setPaused(one, "orders", isPaused);
    const start = performance.now();
    await until(async () => (await isRefused(two, "orders")) === isPaused);
    took.push(performance.now() - start);
  }
  return took;
}

test("a change of a tag is noticed at once, and costs its server two polls at most", async () => {
  const [one, two] = await pair(await ownRedis());
  await createTag(one, "orders");
  await generateId(two, "orders");
  await sleep(100);
  const polls = one.store.count("changes");
  const start = performance.now();
  const took = await noticed(one, two, 8);
  // Polls alone would take half a second on average, whatever the moment.
  expect(took.toSorted((a, b) => a - b)[4]).toBeLessThan(200);
  const own = one.store.count("changes") - polls;
  // One asks who obeys, the next one says that this server does; the others are due anyway.
  const due = 1 + Math.ceil((performance.now() - start) / 1_000);
  expect(own).toBeLessThanOrEqual(2 * took.length + due);
});

test("a server hears of others' changes, and not of its own", async () => {
  const redis = await ownRedis();
  const both = [0, 1].map(() => {
    const its = { signals: new TagSignals(redis.url, () => "given"), heard: 0 };
    its.signals.start(() => its.heard++);
    onTestFinished(() => its.signals.close());
    return its;
  });
  const [one, two] = both as [(typeof both)[0], (typeof both)[0]];
  await until(async () => (await listeners(redis)) === 2);
  one.signals.tell();
  await until(() => two.heard === 1);
  await sleep(200);
  expect(one.heard).toBe(0);
  two.signals.tell();
  await until(() => one.heard === 1);
  await sleep(200);
  expect([one.heard, two.heard]).toEqual([1, 1]);
});

test("without the signals the polls find every change, and no change waits for Redis", async () => {
  const redis = await ownRedis();
  const [one, two] = await pair(redis);
  await createTag(one, "orders");
  await generateId(two, "orders");
  redis.pause();
  const start = performance.now();
  await setPaused(one, "orders", true);
  expect(performance.now() - start).toBeLessThan(400);
  await until(() => isRefused(two, "orders"), 2_500);
  redis.resume();
  await redis.kill();
  await setPaused(one, "orders", false);
  await until(async () => !(await isRefused(two, "orders")), 2_500);
  await redis.start();
  await until(async () => (await listeners(redis)) === 2, 10_000);
  const took = await noticed(one, two, 6);
  expect(took.toSorted((a, b) => a - b)[3]).toBeLessThan(200);
});

test("a flood of changes is a few signals, and a few polls", async () => {
  const redis = await ownRedis();
  const [one, two] = await pair(redis);
  const flood = new TagSignals(redis.url, () => "given");
  let heard = 0;
  const third = new TagSignals(redis.url, () => "given");
  third.start(() => heard++);
  await until(async () => (await listeners(redis)) === 3);
  try {
    const start = performance.now();
    const polls = [one, two].map(({ store }) => store.count("changes"));
    for (let turn = 0; turn < 200; turn++) {
      for (let at = 0; at < 50; at++) flood.tell();
      await sleep(5);
    }
    await until(() => heard > 0);
    expect(heard).toBeLessThanOrEqual(401);
    for (const [at, { store }] of [one, two].entries()) {
      const more = store.count("changes") - polls[at]!;
      // 200 turns take more than a second. However long they take, a poll begins 50 ms after the one before it (timers may
      // be a millisecond early).
      expect(more).toBeGreaterThan(5);
      expect(more).toBeLessThanOrEqual(2 + (performance.now() - start) / 49);
    }
  } finally {
    await Promise.all([flood.close(), third.close()]);
  }
});
